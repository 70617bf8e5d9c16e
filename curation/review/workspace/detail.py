"""One sample's answers with their facts and revisions, and the messages before its turn with the tools that they may
call, for the page, the panel and REST; and the scan's findings in these texts, as the page lists and marks them.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from curation.duels.models import Answer, Duel, Opponent, PromptText
from curation.duels.pages.schemas import FactsOut
from curation.projects.access import Access
from curation.projects.settings.data import OF_TURNS, Words
from curation.review.decisions.findings import CHALLENGER, TextFinding, findings_of
from curation.review.decisions.outcome import latest_revisions
from curation.review.decisions.revise import reference_text
from curation.review.models import Pick, Revision
from curation.samples.models import SCANNED, Sample
from curation.trajectories.session.conversation import StepConversation
from curation.trajectories.session.shown import Shown
from curation.trajectories.shell import positions_of
from curation.web.database.queries import Prepared
from curation.web.text.markup import Mark, Span, marked, scan_marks
from curation.web.text.transcript import Chat, Recorded, Source, TurnPosition
from judging.answers.facts import answer_facts
from judging.messages import estimated_tokens
from judging.scan.rules import CONTROL

_OF_ANSWER = ("model", "has_thought", "blocks", "commands", "action_style", "tokens", "text__text")
# Only the columns that are shown: reading the others doubles the time.
SHOWN = (
    *("sample_id", "opponent", "metrics", "score", "scoring", "counting_id", "prompt__row_offset"),
    *(f"{side}__{name}" for side in ("king", "challenger") for name in _OF_ANSWER),
    *(f"challenger__{name}" for name in ("leak_score", "leak_spans")),
)


@dataclass(frozen=True, slots=True)
class AnswerDetail:
    """One side of a duel. `text`, `facts` and the leak columns are the model's; `kept_text` is the text that approving
    keeps, its latest revision if any, and `kept_facts` and `kept_leaks` are of that."""

    side: Pick
    label: str
    model: str
    text: str
    facts: FactsOut
    revision: Revision | None
    leak_score: float | None = None
    leak_spans: tuple[dict[str, object], ...] = ()

    @property
    def kept_text(self) -> str:
        return self.revision.text if self.revision else self.text

    @property
    def kept_facts(self) -> FactsOut:
        return facts_of(self.revision.text) if self.revision else self.facts

    @property
    def blind_facts(self) -> FactsOut:
        """The facts that tell nothing of the side: a server's count of tokens would."""
        return replace(self.kept_facts, tokens=estimated_tokens(len(self.kept_text)))

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


def facts_of(text: str) -> FactsOut:
    found = answer_facts(text)
    return FactsOut(found.has_thought, found.blocks, found.commands, found.action_style, estimated_tokens(len(text)))


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


def _answer(side: Pick, label: str, row: Answer, latest: dict[str, Revision]) -> AnswerDetail:
    linted = side == Pick.CHALLENGER  # of the models' answers the lint reads no other
    return AnswerDetail(
        side=side,
        label=label,
        model=row.model,
        text=row.text.text,
        facts=FactsOut(row.has_thought, row.blocks, row.commands, row.action_style, row.tokens),
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


CONTEXT = 60


@dataclass(frozen=True, slots=True)
class FindingView:
    """One finding in its context. `anchor` is the id of its mark, empty if the page does not show the text; `load_url`
    loads the part of a transcript that has the mark. `action` is an export's action on it, `keep_out` or `mask`."""

    found: TextFinding
    place: str
    anchor: str
    load_url: str
    action: str
    html: SafeString


def findings_shown(access: Access, sample: Sample, *, blind: bool, places: "ShownPlaces") -> list[FindingView]:
    """Return the findings in the order of the texts. Remarks of other reviewers are left out while the review is
    blind."""
    if not sample.flags & SCANNED and not sample.clearances.exists():
        return []
    views = []
    told: set[tuple[str, int]] = set()
    first = next(iter(places.answers), CHALLENGER)
    for number, found in enumerate(findings_of(sample, first=first)):
        place, anchor, load_url = places.of(found, number)
        if found.kind == CONTROL and (found.part, found.index) in told:
            continue  # the output of a terminal has hundreds
        if found.kind == CONTROL:
            told.add((found.part, found.index))
        if blind and found.part in ("comment", "note"):
            continue
        start = max(0, found.start - CONTEXT)
        mark = Mark(found.start - start, found.end - start, "scan")
        html = marked(found.text[start : found.end + CONTEXT], [mark])
        action = access.project.settings.scan.action(found.rule)
        views.append(FindingView(found, place, anchor, load_url, action, html))
    return views


def marks_of(findings: Iterable[FindingView], part: str, *, index: int | None = None, text: str = "") -> list[Mark]:
    """Return the marks in the answer of this side, or in one `text` of a comment or note."""
    return [
        Mark(view.found.start, view.found.end, "scan", view.anchor, view.found.rule)
        for view in findings
        if view.found.part == part
        and view.anchor
        and (index is None or (view.found.index, view.found.text) == (index, text))
    ]


class ShownPlaces:
    """Where the page of a sample shows each finding: the place in words, the id of its mark, and the URL that loads it.

    The page has the `answers` by side from left to right, each with its place and the revision that is shown, 0 for the
    answer as recorded; the history or session; and `remarks`, each `comment` or `note` with the id of its decision or
    revision.
    """

    def __init__(
        self,
        access: Access,
        sample: Sample,
        *,
        answers: Mapping[str, tuple[str, int]],
        transcript: History | Shown | None,
        remarks: Collection[tuple[str, int]],
    ) -> None:
        self.answers, self._transcript, self._remarks = answers, transcript, remarks
        self._view = "" if transcript is None or isinstance(transcript, History) else transcript.view
        name = "sample-sibling" if self._view else "history-window"
        self._url = reverse(name, args=[access.project.slug, sample.pk])
        self._marks: dict[tuple[str, int], dict[str, Mark]] = {}
        self._numbers: Counter[tuple[str, int]] = Counter()
        self._positions: list[int] = []
        self._used: set[str] = set()

    def of(self, found: TextFinding, number: int) -> tuple[str, str, str]:
        """Call it for all findings, in the order of `findings_of`; `number` counts them."""
        anchor = f"finding-{number}"
        if found.part in ("history", "turn", "tools"):
            return self._in_transcript(found)
        if found.part in ("comment", "note"):
            return f"a {found.part}", anchor if (found.part, found.index) in self._remarks else "", ""
        if found.part not in self.answers:
            return found.part, "", ""
        place, revision = self.answers[found.part]
        if revision != found.index:
            return f"{place} answer before its revision", "", ""
        return f"{place} answer", anchor, ""

    def _in_transcript(self, found: TextFinding) -> tuple[str, str, str]:
        key = (found.part, found.index)
        number = self._numbers[key]
        self._numbers[key] += 1
        transcript = self._transcript
        if transcript is None:
            return found.part, "", ""
        if found.part == "tools":
            return "the tools", f"{TOOLS_PREFIX}-{number}", ""
        if isinstance(transcript, StepConversation):
            return self._in_conversation(transcript, found)
        prefix = transcript.mark_prefix(found.index)
        if key not in self._marks:
            marks = transcript.marks(found.index)
            self._marks[key] = {mark.anchor: mark for mark in marks}
        mark = self._marks[key].get(f"{prefix}-{number}")
        in_turn = found.part == "turn"
        words = f"session, {transcript.role(found.index)}" if in_turn else f"history, turn {found.index}"
        if mark is None:
            return f"{words}, in a field that the page does not show", "", ""
        return words, mark.anchor, self._load_url(found.index, mark)

    def _in_conversation(self, transcript: StepConversation, found: TextFinding) -> tuple[str, str, str]:
        """Findings name a turn of the terminal view; in a conversation, its step has the value in one of its texts."""
        if not self._positions:
            self._positions = positions_of(transcript.steps)
        position = self._positions[found.index]
        value = found.text[found.start : found.end]
        for turn in transcript.turns_of(position):
            for mark in transcript.marks(turn):
                is_it = mark.title == found.rule and transcript.text(turn)[mark.start : mark.end] == value
                if is_it and mark.anchor not in self._used:
                    self._used.add(mark.anchor)
                    return f"session, {transcript.role(turn)}", mark.anchor, self._load_url(turn, mark)
        return f"session, step {transcript.number(position)}, in a field that the page does not show", "", ""

    def _load_url(self, turn: int, mark: Mark) -> str:
        query: dict[str, str | int] = {"turn": turn, "start": mark.start, "main": 1}
        return f"{self._url}?{urlencode(query | ({'view': self._view} if self._view else {}))}"
