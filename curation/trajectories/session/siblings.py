"""A scenario's trajectories side by side: what two of them share, and where they part."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from curation.trajectories.models import Outcome, Trajectory, TrajectoryText
from curation.trajectories.session.steps import Part, Place, Turn, opening, places_of
from curation.web.ids import find

# A scenario is rolled out a few times per model; more siblings than this are in the list of trajectories.
MOST = 40


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another trajectory of the scenario. `outcome`, `tone` and `model` are empty while blind.

    `other_bundle`: the scenario was edited between the two.
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
    """`shared` steps stand in both, then each goes its own way; `said` is in words what differs first."""

    other: Sibling
    shared: int
    said: str
    mine: list[Part]
    theirs: list[Part]


@dataclass(frozen=True, slots=True)
class Beside:
    """The siblings, the comparison with one of them, and which one a key brings next; None where there is none."""

    siblings: list[Sibling]
    comparison: Comparison | None
    following: Sibling | None


def beside(trajectory: Trajectory, *, other_id: str = "", blind: bool = False) -> Beside:
    """Reads the slim siblings and the transcript of the one to compare with: two queries. Needs `trajectory.text`."""
    rows = Trajectory.objects.siblings_of(trajectory)
    siblings = list(rows[:MOST])
    if other_id:
        chosen: Trajectory | None = find(rows, other_id, "sibling")
    else:
        chosen = _usual(trajectory, siblings, blind=blind)
    if chosen is None:
        return Beside([], None, None)
    shown = [_sibling(row, trajectory, chosen, blind=blind) for row in siblings]
    theirs = TrajectoryText.objects.only("turns").get(pk=chosen.pk).turns
    at = next((place for place, row in enumerate(shown) if row.current), -1)
    return Beside(
        siblings=shown,
        comparison=compare(trajectory.text.turns, theirs, _sibling(chosen, trajectory, chosen, blind=blind)),
        following=shown[(at + 1) % len(shown)] if len(shown) > 1 else None,
    )


def compare(mine: Sequence[Turn], theirs: Sequence[Turn], other: Sibling) -> Comparison:
    """Equal are steps with the same command and the same output; exit codes and times don't count."""
    places = (places_of(mine), places_of(theirs))
    pairs = zip(*places, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: _texts(mine, pair[0]) == _texts(theirs, pair[1]), pairs))
    return Comparison(
        other=other,
        shared=shared,
        said=_said(mine, theirs, shared, *places),
        mine=opening(mine, first=shared),
        theirs=opening(theirs, first=shared),
    )


def _usual(trajectory: Trajectory, siblings: Sequence[Trajectory], *, blind: bool) -> Trajectory | None:
    """Whom to compare with when nobody was named: one that ended otherwise, which teaches most.

    While blind the choice must not tell how either ended: then it is the next one, and after the last the first.
    """
    if not blind:
        same = [row for row in siblings if row.bundle_sha256 == trajectory.bundle_sha256]
        unlike = next((row for row in same if row.keep != trajectory.keep), None)
        if unlike is not None:
            return unlike
    return next((row for row in siblings if row.pk > trajectory.pk), siblings[0] if siblings else None)


def _sibling(row: Trajectory, trajectory: Trajectory, chosen: Trajectory, *, blind: bool) -> Sibling:
    outcome = Outcome(row.outcome)
    return Sibling(
        pk=row.pk,
        sample_index=row.sample_index,
        model="" if blind else row.model,
        outcome="" if blind else outcome.label,
        tone="" if blind else outcome.tone,
        other_bundle=row.bundle_sha256 != trajectory.bundle_sha256,
        current=row.pk == chosen.pk,
    )


def _texts(turns: Sequence[Turn], place: Place) -> list[tuple[object, object]]:
    return [(turns[index].get("kind"), turns[index].get("text")) for index in place.turns]


def _said(mine: Sequence[Turn], theirs: Sequence[Turn], at: int, a: Sequence[Place], b: Sequence[Place]) -> str:
    if at == len(a) == len(b):
        return "Both went the same way to the end."
    if at == len(a) or at == len(b):
        return f"After {_steps(at)} {'this one' if at == len(a) else 'the sibling'} has ended."
    if at == 0:
        return "They were shown different orientations."
    one, two = a[at].action, b[at].action
    if one is not None and two is not None and mine[one].get("text") == theirs[two].get("text"):
        return f"Step {at}: the same command, another output."
    return f"Step {at}: another command."


def _steps(count: int) -> str:
    return f"{count - 1} {'step' if count == 2 else 'steps'}"
