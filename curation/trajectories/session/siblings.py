"""Two trajectories of a scenario or task side by side: the steps that both share, and where they diverge."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from string import ascii_uppercase
from typing import ClassVar
from urllib.parse import urlencode

from curation.projects.access import Access
from curation.samples.blind import hides, record_unblinding
from curation.trajectories.models import Outcome, Trajectory
from curation.trajectories.session.conversation import Exchange
from curation.trajectories.session.shown import Shown, shown_as
from curation.trajectories.session.steps import TERMINAL
from curation.web.ids import find
from curation.web.text.figures import counted
from curation.web.text.transcript import Excerpt, Source, TerminalStep, opening_spans, parts_of

# A page lists this many siblings; the list of trajectories has all.
MOST = 40
# Names of siblings: B to Z, then B2 to Z2.
LETTERS = [f"{letter}{row}" for row in ("", *map(str, range(2, MOST // 25 + 3))) for letter in ascii_uppercase[1:]]


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another trajectory of the scenario or task, by its `letter`: the one on the page is A. `outcome`, `tone` and
    `model` are empty where they are hidden.

    `is_other_bundle`: the scenario was edited between the two rollouts. `is_compared`: the page compares with it.
    """

    pk: int
    letter: str
    run_id: int | None
    model: str
    outcome: str
    tone: str
    is_other_bundle: bool
    is_compared: bool


@dataclass(frozen=True, slots=True)
class StepPair:
    """Two steps of the same number; None where one of the two has ended. `ended` is the sentence for its end."""

    template: ClassVar[str] = "trajectories/session/_beside.html"
    mine: TerminalStep | Exchange | None
    theirs: TerminalStep | Exchange | None
    of_mine: Source | None
    of_theirs: Source | None
    ended: str = ""


@dataclass(frozen=True, slots=True)
class SiblingComparison:
    """The first `shared` steps are equal; `divergence` says what differs next, `rest` has the steps from there on."""

    other: Sibling
    shared: int
    divergence: str
    rest: Excerpt[StepPair]


@dataclass(frozen=True, slots=True)
class Siblings:
    all: list[Sibling]
    comparison: SiblingComparison | None
    next: Sibling | None


def compare_siblings(
    access: Access,
    trajectory: Trajectory,
    mine: Shown,
    *,
    other_id: str = "",
    blind: bool = False,
    by_default: bool = True,
) -> Siblings:
    """Compare with `other_id`, or `by_default` with the sibling that teaches most. `mine` is the trajectory as it is
    shown. The audit log gets an entry where a curator sees the outcome of a sibling that is pending.

    While the page of this trajectory is `blind`, the outcomes of all siblings are hidden; else those of siblings whose
    own samples hide them from the reader.
    """
    rows = Trajectory.objects.siblings_of(trajectory).select_related("sample")
    siblings = list(rows[:MOST])

    def is_revealed(row: Trajectory) -> bool:
        return not blind and (row.sample is None or not hides(access, row.sample))

    if other_id:
        other: Trajectory | None = find(rows, other_id, "sibling")
    else:
        other = _default_sibling(trajectory, siblings, list(filter(is_revealed, siblings))) if by_default else None
    if not blind:
        record_unblinding(access, [row.sample_id for row in (*siblings, *filter(None, [other]))])
    letters = dict(zip((row.pk for row in siblings), LETTERS, strict=False))

    def sibling(row: Trajectory) -> Sibling:
        return _sibling(row, trajectory, other, letters.get(row.pk, "?"), hidden=not is_revealed(row))

    shown = list(map(sibling, siblings))
    compared = next((place for place, row in enumerate(shown) if row.is_compared), -1)
    following = shown[(compared + 1) % len(shown)] if shown else None
    comparison = None
    if other is not None:
        theirs = shown_as(access, Trajectory.objects.with_text().get(pk=other.pk), mine.view)
        comparison = compare(mine, theirs, sibling(other))
    return Siblings(shown, comparison, None if following and following.is_compared else following)


def compare(mine: Shown, theirs: Shown, other: Sibling) -> SiblingComparison:
    shared = shared_steps(mine, theirs)
    end = max(len(mine), len(theirs))
    return SiblingComparison(
        other=other,
        shared=shared,
        divergence=_divergence(mine, theirs, shared),
        rest=beside(mine, theirs, shared, end, opening_spans(shared, end, mine.opened_at())),
    )


def shared_steps(mine: Shown, theirs: Shown) -> int:
    both = range(min(len(mine), len(theirs)))
    return sum(1 for _ in takewhile(lambda place: mine.compared_texts(place) == theirs.compared_texts(place), both))


def beside(mine: Shown, theirs: Shown, start: int, end: int, spans: Sequence[tuple[int, int]]) -> Excerpt[StepPair]:
    """Return the steps of both from `start` to `end` that are in one of the spans, by their number."""

    def entry(place: int) -> StepPair:
        left = mine.entry(place) if place < len(mine) else None
        right = theirs.entry(place) if place < len(theirs) else None
        ended = (
            "This one has ended." if place == len(mine) else "The sibling has ended." if place == len(theirs) else ""
        )
        return StepPair(left, right, mine.source, theirs.source, ended)

    query = urlencode({"with": theirs.source.pk if theirs.source else "", "view": mine.view})
    source = mine.source and replace(mine.source, window="trajectory-beside", query=query)
    return Excerpt(parts_of(start, end, spans, entry), max(len(mine), len(theirs)), 0, source)


def _default_sibling(
    trajectory: Trajectory, siblings: Sequence[Trajectory], known: Sequence[Trajectory]
) -> Trajectory | None:
    """Choose one with the other outcome, which teaches most, else the next one; after the last one, the first.

    The choice must not reveal an outcome, so only those of the `known` count.
    """
    same = [row for row in known if row.bundle_sha256 == trajectory.bundle_sha256]
    unlike = next((row for row in same if row.keep != trajectory.keep), None)
    if unlike is not None:
        return unlike
    return next((row for row in siblings if row.pk > trajectory.pk), siblings[0] if siblings else None)


def _sibling(
    row: Trajectory, trajectory: Trajectory, other: Trajectory | None, letter: str, *, hidden: bool
) -> Sibling:
    outcome = Outcome(row.outcome)
    return Sibling(
        pk=row.pk,
        letter=letter,
        run_id=row.run_id,
        model="" if hidden else row.model,
        outcome="" if hidden else outcome.label,
        tone="" if hidden else outcome.tone,
        is_other_bundle=row.bundle_sha256 != trajectory.bundle_sha256,
        is_compared=other is not None and row.pk == other.pk,
    )


def _divergence(mine: Shown, theirs: Shown, at: int) -> str:
    if at == len(mine) == len(theirs):
        return "Both took the same steps to the end."
    if at == len(mine) or at == len(theirs):
        steps = counted(at - (mine.view == TERMINAL), "step")  # an orientation is none
        return f"After {steps} {'this one' if at == len(mine) else 'the sibling'} has ended."
    if at == 0 and mine.view == TERMINAL:
        return "The two sessions began with different orientations."
    action, result = mine.words(at)
    is_same = mine.compared_texts(at)[0] == theirs.compared_texts(at)[0]
    what = f"the same {action}, another {result}" if is_same else f"another {action}"
    return f"First difference: step {mine.number(at)}, {what}."
