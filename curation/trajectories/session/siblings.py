"""Two trajectories of a scenario side by side: the steps that both share, and where they diverge."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from curation.projects.access import Access
from curation.samples.blind import hides, look_at
from curation.trajectories.models import Outcome, Trajectory, TrajectoryText
from curation.trajectories.session.steps import Session
from curation.web.ids import find
from curation.web.text.transcript import Excerpt, Position, Step

# A page lists this many siblings; the list of trajectories has all.
MOST = 40


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another trajectory of the scenario. `outcome`, `tone` and `model` are empty where they are hidden.

    `other_bundle`: the scenario was edited between the two rollouts. `current`: it is the one compared with.
    """

    pk: int
    sample_index: int
    model: str
    outcome: str
    tone: str
    other_bundle: bool
    current: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """The first `shared` steps are equal; `divergence` says what differs next, `mine` and `theirs` are the rest."""

    other: Sibling
    shared: int
    divergence: str
    mine: Excerpt[Step]
    theirs: Excerpt[Step]


@dataclass(frozen=True, slots=True)
class Siblings:
    """All siblings, the comparison with one of them, and the one that the next key press compares with."""

    all: list[Sibling]
    comparison: Comparison | None
    next: Sibling | None


def compare_siblings(
    access: Access, trajectory: Trajectory, *, other_id: str = "", blind: bool = False, at: Position | None = None
) -> Siblings:
    """Compare with `other_id`, or with a default, and show `at` of this trajectory. Needs `trajectory.text`.

    While the page of this trajectory is `blind`, the outcomes of all siblings are hidden; else those of siblings whose
    own samples hide them from the reader.
    """
    rows = Trajectory.objects.siblings_of(trajectory).select_related("sample")
    siblings = list(rows[:MOST])
    known = [] if blind else [row for row in siblings if row.sample is None or not hides(access, row.sample)]
    other = find(rows, other_id, "sibling") if other_id else _default_sibling(trajectory, siblings, known)
    if other is None:
        return Siblings([], None, None)
    if not blind:
        look_at(access, [row.sample_id for row in (*siblings, other)])
    told = {row.pk for row in known}
    if not blind and (other.sample is None or not hides(access, other.sample)):
        told.add(other.pk)
    shown = [_sibling(row, trajectory, other, hidden=row.pk not in told) for row in siblings]
    theirs = Session(TrajectoryText.objects.only("steps").get(pk=other.pk).turns, other.pk)
    mine = Session(trajectory.text.turns, trajectory.pk, at=at)
    current = next((place for place, row in enumerate(shown) if row.current), -1)
    return Siblings(
        all=shown,
        comparison=compare(mine, theirs, _sibling(other, trajectory, other, hidden=other.pk not in told)),
        next=shown[(current + 1) % len(shown)] if len(shown) > 1 else None,
    )


def compare(mine: Session, theirs: Session, other: Sibling) -> Comparison:
    both = range(min(len(mine), len(theirs)))
    shared = sum(1 for _ in takewhile(lambda number: mine.texts(number) == theirs.texts(number), both))
    return Comparison(
        other=other,
        shared=shared,
        divergence=_divergence(mine, theirs, shared),
        mine=mine.opening(first=shared),
        theirs=theirs.opening(first=shared),
    )


def _default_sibling(
    trajectory: Trajectory, siblings: Sequence[Trajectory], known: Sequence[Trajectory]
) -> Trajectory | None:
    """Choose one with the other verdict, which teaches most, else the next one; after the last one, the first.

    The choice must not reveal a verdict, so only those of the `known` count.
    """
    same = [row for row in known if row.bundle_sha256 == trajectory.bundle_sha256]
    unlike = next((row for row in same if row.keep != trajectory.keep), None)
    if unlike is not None:
        return unlike
    return next((row for row in siblings if row.pk > trajectory.pk), siblings[0] if siblings else None)


def _sibling(row: Trajectory, trajectory: Trajectory, other: Trajectory, *, hidden: bool) -> Sibling:
    outcome = Outcome(row.outcome)
    return Sibling(
        pk=row.pk,
        sample_index=row.sample_index,
        model="" if hidden else row.model,
        outcome="" if hidden else outcome.label,
        tone="" if hidden else outcome.tone,
        other_bundle=row.bundle_sha256 != trajectory.bundle_sha256,
        current=row.pk == other.pk,
    )


def _divergence(mine: Session, theirs: Session, at: int) -> str:
    if at == len(mine) == len(theirs):
        return "Both took the same steps to the end."
    if at == len(mine) or at == len(theirs):
        steps = f"{at - 1} {'step' if at == 2 else 'steps'}"
        return f"After {steps} {'this one' if at == len(mine) else 'the sibling'} has ended."
    if at == 0:
        return "The two sessions began with different orientations."
    one, two = mine.places[at].action, theirs.places[at].action
    if one is not None and two is not None and mine.raw_text(one) == theirs.raw_text(two):
        return f"Step {at}: the same command, another output."
    return f"Step {at}: another command."
