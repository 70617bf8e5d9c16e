"""What the scan found in a sample, as its page lists and marks it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.safestring import SafeString

from curation.projects.access import Access
from curation.review.decisions.findings import Found, findings_of
from curation.samples.models import SCANNED, Sample
from curation.web.text.markup import Mark, marked

CONTEXT = 60
PLACES = {"history": "history, message", "turn": "session, turn", "comment": "a comment", "note": "a note"}


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer on the page: where it is, and the revision that is shown, 0 for the answer as recorded."""

    place: str
    revision: int


@dataclass(frozen=True, slots=True)
class FindingView:
    """One finding in its context. `anchor` is the id of its mark in an answer on the page, or empty. `action` is what
    an export does with it, `keep_out` or `mask`."""

    found: Found
    place: str
    anchor: str
    action: str
    html: SafeString


def findings_shown(
    access: Access, sample: Sample, *, blind: bool, answers: Mapping[str, ShownAnswer]
) -> list[FindingView]:
    """Return the findings in the order of the texts. `answers` are those on the page, by side. What other reviewers
    wrote is left out while the review is blind."""
    if not sample.flags & SCANNED and not sample.clearances.exists():
        return []
    views = []
    for number, found in enumerate(findings_of(sample)):
        if blind and found.part in ("comment", "note"):
            continue
        answer = answers.get(found.part)
        anchor = f"finding-{number}" if answer is not None and answer.revision == found.index else ""
        start = max(0, found.start - CONTEXT)
        mark = Mark(found.start - start, found.end - start, "scan")
        html = marked(found.text[start : found.end + CONTEXT], [mark])
        action = access.project.settings.scan.action(found.rule)
        views.append(FindingView(found, _place(found, answer, shown=bool(anchor)), anchor, action, html))
    return views


def marks_of(findings: Iterable[FindingView], side: str) -> list[Mark]:
    """Return the marks in the answer of this side."""
    return [
        Mark(view.found.start, view.found.end, "scan", view.anchor, view.found.rule)
        for view in findings
        if view.found.part == side and view.anchor
    ]


def _place(found: Found, answer: ShownAnswer | None, *, shown: bool) -> str:
    if answer is not None:
        return f"{answer.place} answer" if shown else f"{answer.place} answer before its revision"
    number = f" {found.index + 1}" if found.part in ("history", "turn") else ""
    return PLACES.get(found.part, found.part) + number
