"""The scan's findings in a sample, as its page lists and marks them."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from curation.projects.access import Access
from curation.review.decisions.findings import CHALLENGER, TextFinding, findings_of
from curation.review.workspace.detail import TOOLS_PREFIX, History
from curation.samples.models import SCANNED, Sample
from curation.trajectories.session.conversation import StepConversation
from curation.trajectories.session.shown import Shown
from curation.trajectories.shell import positions_of
from curation.web.text.markup import Mark, marked
from judging.scan.rules import CONTROL

CONTEXT = 60


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer on the page: where it is, and the revision that is shown, 0 for the answer as recorded."""

    place: str
    revision: int


@dataclass(frozen=True, slots=True)
class ShownTexts:
    """The texts on the page of a sample: `answers` by side from left to right, its history or session, and its
    `remarks`, each `comment` or `note` with the id of its decision or revision."""

    answers: Mapping[str, ShownAnswer] = field(default_factory=dict)
    transcript: History | Shown | None = None
    remarks: Collection[tuple[str, int]] = ()


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


def findings_shown(access: Access, sample: Sample, *, blind: bool, shown: ShownTexts) -> list[FindingView]:
    """Return the findings in the order of the texts. Remarks of other reviewers are left out while the review is
    blind."""
    if not sample.flags & SCANNED and not sample.clearances.exists():
        return []
    places = _Places(access, sample, shown)
    views = []
    told: set[tuple[str, int]] = set()
    first = next(iter(shown.answers), CHALLENGER)
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


class _Places:
    """Where the page shows each finding: the place in words, the id of its mark, and the URL that loads it."""

    def __init__(self, access: Access, sample: Sample, shown: ShownTexts) -> None:
        self._shown = shown
        self._view = "" if shown.transcript is None or isinstance(shown.transcript, History) else shown.transcript.view
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
            return f"a {found.part}", anchor if (found.part, found.index) in self._shown.remarks else "", ""
        answer = self._shown.answers.get(found.part)
        if answer is None:
            return found.part, "", ""
        if answer.revision != found.index:
            return f"{answer.place} answer before its revision", "", ""
        return f"{answer.place} answer", anchor, ""

    def _in_transcript(self, found: TextFinding) -> tuple[str, str, str]:
        key = (found.part, found.index)
        number = self._numbers[key]
        self._numbers[key] += 1
        transcript = self._shown.transcript
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
        words = _words(transcript, found)
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


def _words(transcript: History | Shown, found: TextFinding) -> str:
    return f"session, {transcript.role(found.index)}" if found.part == "turn" else f"history, turn {found.index}"
