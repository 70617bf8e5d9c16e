"""All that is known of one sample's answers, read once for the page, the panel and REST."""

from dataclasses import dataclass

from curation.duels.models import Answer, Duel
from curation.review.decisions.outcome import reference_texts
from curation.review.models import Pick, Revision
from curation.samples.models import Sample
from curation.web.prepared import Prepared
from judging.answers.facts import answer_facts

CHARACTERS_PER_TOKEN = 4


_OF_ANSWER = ("model", "has_thought", "blocks", "commands", "action_style", "tokens", "text__text")
# Every column named here is wanted; naming them halves what a page reads.
SHOWN = (
    *("sample_id", "opponent", "metrics", "prompt__row_offset"),
    *(f"{side}__{name}" for side in ("king", "challenger") for name in _OF_ANSWER),
    *(f"challenger__{name}" for name in ("leak_score", "leak_flag", "leak_spans")),
)


@dataclass(frozen=True, slots=True)
class Facts:
    """Computed, not judged. `tokens` of a text that no model counted is estimated: characters ÷ 4."""

    has_thought: bool
    blocks: int
    commands: int
    action_style: str
    tokens: int

    @property
    def one_block(self) -> bool:
        return self.blocks == 1

    @property
    def one_command(self) -> bool:
        return self.commands == 1


@dataclass(frozen=True, slots=True)
class AnswerDetail:
    """One side of a duel. `text` is the model's; `kept_text` is what approving keeps, its latest revision if any."""

    side: str
    label: str
    model: str
    text: str
    facts: Facts
    revision: Revision | None
    leak_score: float | None = None
    leak_flag: bool = False
    leak_spans: tuple[dict[str, object], ...] = ()

    @property
    def kept_text(self) -> str:
        return self.revision.text if self.revision else self.text


@dataclass(frozen=True, slots=True)
class Detail:
    """A sample's duel with both answers; a sample that comes from elsewhere has none."""

    duel: Duel
    candidate: AnswerDetail
    opponent: AnswerDetail

    def side(self, pick: str) -> AnswerDetail:
        return self.opponent if pick == Pick.OPPONENT else self.candidate


_duel_of = Prepared(
    lambda sample: (
        Duel.objects.filter(sample=sample).select_related("prompt", "king__text", "challenger__text").only(*SHOWN)[:1]
    ),
    sample=int,
)


def facts_of(text: str) -> Facts:
    found = answer_facts(text)
    return Facts(
        found.has_thought, found.blocks, found.commands, found.action_style, -(-len(text) // CHARACTERS_PER_TOKEN)
    )


def detail_of(sample: Sample) -> Detail | None:
    """Two queries; one more where the opponent is the source's own turn."""
    duel = _duel_of.first(sample=sample.pk)
    if duel is None:
        return None
    latest: dict[str, Revision] = {}
    if sample.version > 1:  # a revision raises it
        for row in Revision.objects.filter(sample=sample).select_related("author").order_by("number"):
            latest[row.of] = row
    candidate = _answer(Pick.CANDIDATE, "Challenger", duel.challenger, latest)
    if duel.king is not None:
        return Detail(duel, candidate, _answer(Pick.OPPONENT, "King", duel.king, latest))
    text = reference_texts([duel.prompt_id]).get(duel.prompt_id, "")
    opponent = AnswerDetail(Pick.OPPONENT, "Reference", "", text, facts_of(text), latest.get(Pick.OPPONENT))
    return Detail(duel, candidate, opponent)


def _answer(side: Pick, label: str, row: Answer, latest: dict[str, Revision]) -> AnswerDetail:
    linted = side == Pick.CANDIDATE
    return AnswerDetail(
        side=side.value,
        label=label,
        model=row.model,
        text=row.text.text,
        facts=Facts(row.has_thought, row.blocks, row.commands, row.action_style, row.tokens),
        revision=latest.get(side.value),
        leak_score=row.leak_score if linted else None,
        leak_flag=linted and row.leak_flag,
        leak_spans=tuple(row.leak_spans) if linted else (),
    )
