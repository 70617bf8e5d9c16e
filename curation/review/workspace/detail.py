"""One sample's answers with their facts and revisions, and the messages before its turn with the tools that they may
call, for the page, the panel and REST.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils.safestring import SafeString

from curation.duels.models import Answer, Duel, Opponent, PromptText
from curation.projects.settings.data import OF_TURNS, Words
from curation.review.decisions.outcome import LatestRevision, latest_revisions
from curation.review.decisions.revise import reference_text
from curation.review.models import Pick
from curation.samples.models import Sample
from curation.web.database.prepared import Prepared
from curation.web.text.chat import Chat
from curation.web.text.markup import Span, marked, scan_marks
from curation.web.text.transcript import Recorded, Source, TurnPosition
from judging.answers.facts import answer_facts

CHARACTERS_PER_TOKEN = 4


_OF_ANSWER = ("model", "has_thought", "blocks", "commands", "action_style", "tokens", "text__text")
# Only the columns that are shown: reading the others doubles the time.
SHOWN = (
    *("sample_id", "opponent", "metrics", "score", "scoring", "counting_id", "prompt__row_offset"),
    *(f"{side}__{name}" for side in ("king", "challenger") for name in _OF_ANSWER),
    *(f"challenger__{name}" for name in ("leak_score", "leak_spans")),
)


@dataclass(frozen=True, slots=True)
class Facts:
    """Computed, not judged. Where no model has counted, `tokens` is an estimate: characters ÷ 4."""

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
    """One side of a duel. `text`, `facts` and the leak columns are the model's; `kept_text` is the text that approving
    keeps, its latest revision if any, and `kept_facts` and `kept_leaks` are of that."""

    side: Pick
    label: str
    model: str
    text: str
    facts: Facts
    revision: LatestRevision | None
    leak_score: float | None = None
    leak_spans: tuple[dict[str, object], ...] = ()

    @property
    def kept_text(self) -> str:
        return self.revision.text if self.revision else self.text

    @property
    def kept_facts(self) -> Facts:
        return facts_of(self.revision.text) if self.revision else self.facts

    @property
    def blind_facts(self) -> Facts:
        """The facts that tell nothing of the side: a server's count of tokens would."""
        return replace(self.kept_facts, tokens=_estimated_tokens(self.kept_text))

    @property
    def kept_leaks(self) -> list[Span]:
        """Sorted pairs. A pair that is not two numbers does not come from the lint and is dropped."""
        spans = self.revision.leak_spans if self.revision else self.leak_spans
        pairs = [(span.get("start"), span.get("end")) for span in spans]
        return sorted((start, end) for start, end in pairs if isinstance(start, int) and isinstance(end, int))


@dataclass(frozen=True, slots=True)
class Detail:
    """A sample's duel with both answers; without an opponent `king` is None."""

    duel: Duel
    king: AnswerDetail | None
    challenger: AnswerDetail

    def side(self, side: str) -> AnswerDetail:
        return self.king if side == Pick.KING and self.king is not None else self.challenger


_duel_of = Prepared(
    lambda sample: (
        Duel.objects.filter(sample=sample).select_related("prompt", "king__text", "challenger__text").only(*SHOWN)
    ),
    sample=int,
)


def facts_of(text: str) -> Facts:
    found = answer_facts(text)
    return Facts(found.has_thought, found.blocks, found.commands, found.action_style, _estimated_tokens(text))


def _estimated_tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def detail_of(sample: Sample, reader: int | None, words: Words = OF_TURNS) -> Detail | None:
    """The sample's duel with the texts that a reader (a user's id) sees, None where it has none. Two queries; one more
    where the king's side is the reference."""
    duel = _duel_of.first(sample=sample.pk)
    if duel is None:
        return None
    # A revision raises the first version, or waits for others.
    revised = sample.version > 1 or sample.opinions
    latest = latest_revisions([sample.pk], reader=reader).get(sample.pk, {}) if revised else {}
    challenger = _answer(Pick.CHALLENGER, words.candidate, duel.challenger, latest)
    if duel.king is not None:
        return Detail(duel, _answer(Pick.KING, words.opponent, duel.king, latest), challenger)
    if duel.opponent == Opponent.NONE:
        return Detail(duel, None, challenger)
    text = reference_text(duel.prompt_id)
    king = AnswerDetail(Pick.KING, "Reference", "", text, facts_of(text), latest.get(Pick.KING))
    return Detail(duel, king, challenger)


def _answer(side: Pick, label: str, row: Answer, latest: dict[str, LatestRevision]) -> AnswerDetail:
    linted = side == Pick.CHALLENGER  # of the models' answers the lint reads no other
    return AnswerDetail(
        side=side,
        label=label,
        model=row.model,
        text=row.text.text,
        facts=Facts(row.has_thought, row.blocks, row.commands, row.action_style, row.tokens),
        revision=latest.get(side),
        leak_score=row.leak_score if linted else None,
        leak_spans=tuple(row.leak_spans) if linted else (),
    )


# Prefix of the ids of the marks in the tools.
TOOLS_PREFIX = "scan-tools"


class History(Chat):
    """The history as imported, with the definitions of its tools."""

    def __init__(
        self, messages: Sequence[Recorded], tools: Sequence[Recorded], source: Source, *, at: TurnPosition | None
    ) -> None:
        super().__init__(messages, source, at=at)
        self.tools = tools

    @property
    def tools_html(self) -> SafeString:
        """The definitions as JSON, with the findings of the scan marked."""
        shown = json.dumps(self.tools, indent=1, ensure_ascii=False)
        return marked(shown, scan_marks(self.tools, shown, TOOLS_PREFIX))


def history_of(sample: Sample, *, at: TurnPosition | None = None) -> History:
    """Return the sample's history, to be opened at `at`; it is empty for a sample without a duel."""
    found = PromptText.objects.filter(prompt__duels__sample=sample).select_related("session").first()
    urls = ("history-window", "history-turn", "history-find", "history-raw")
    history, tools = (found.history, found.tools) if found else ((), ())
    return History(history, tools, Source(sample.pk, "turn", *urls), at=at)
