"""Everything that the page of one trajectory shows, free of queries afterwards."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, Q, Sum
from django.urls import reverse
from django.utils.safestring import SafeString

from curation.runs.models import Call
from curation.trajectories.models import Replay, Trajectory
from curation.trajectories.session.siblings import Beside, beside
from curation.trajectories.session.steps import Part, opening, step_of_turn
from curation.web.text.markup import visible, with_signs, without_colours

SAID = 2_000
DIFFERENCES = 50


@dataclass(frozen=True, slots=True)
class Difference:
    """What the replay saw otherwise. `step` None is not of one step: the terminal or the checker."""

    step: int | None
    what: SafeString
    recorded: SafeString
    replayed: SafeString


@dataclass(frozen=True, slots=True)
class ReplayView:
    row: Replay
    differences: list[Difference]
    more: int


@dataclass(frozen=True, slots=True)
class CallCosts:
    """The model calls of one rollout. `cost` in US dollars counts those whose price is known, `unknown` the others."""

    calls: int
    cost: Decimal
    unknown: int


@dataclass(frozen=True, slots=True)
class TrajectoryView:
    """`size` in characters, `repeated` in percent."""

    parts: list[Part]
    size: int
    repeated: int
    beside: Beside
    replay: ReplayView | None
    checker: SafeString
    panic_reason: SafeString
    previous_url: str
    next_url: str
    sample_url: str
    calls_url: str
    costs: CallCosts | None
    axes: list[tuple[str, str]]


def trajectory_view(
    trajectory: Trajectory, *, slug: str, other_id: str = "", step: int | None = None
) -> TrajectoryView:
    """Seven queries. Needs `with_text()`; `step` is one that the page must show, wherever it stands."""
    turns = trajectory.text.turns
    ids = Trajectory.objects.siblings_of(trajectory).values_list("pk", flat=True)
    before, after = ids.filter(pk__lt=trajectory.pk).last(), ids.filter(pk__gt=trajectory.pk).first()
    return TrajectoryView(
        parts=opening(turns, around=step),
        size=sum(len(str(turn.get("text") or "")) for turn in turns),
        repeated=round(trajectory.repeated_share * 100),
        beside=beside(trajectory, other_id=other_id),
        replay=_replay(trajectory),
        checker=visible(without_colours(trajectory.text.checker_output).rstrip()),
        panic_reason=visible(trajectory.panic_reason),
        previous_url=_page(slug, before),
        next_url=_page(slug, after),
        sample_url=reverse("sample-page", args=[slug, trajectory.sample_id]) if trajectory.sample_id else "",
        calls_url=reverse("run-calls", args=[slug, trajectory.run_id]) if trajectory.run_id else "",
        costs=_costs(trajectory),
        axes=[(with_signs(axis), with_signs(str(value))) for axis, value in trajectory.scenario.axes.items()],
    )


def _page(slug: str, pk: int | None) -> str:
    return reverse("trajectory-page", args=[slug, pk]) if pk else ""


def _costs(trajectory: Trajectory) -> CallCosts | None:
    """None where the run is gone, or no call of it is on record."""
    key = f"{trajectory.scenario_id}:{trajectory.sample_index}"
    calls = Call.objects.filter(item__run=trajectory.run_id, item__stage="rollout", item__key=key)
    found = calls.aggregate(calls=Count("id"), known=Sum("cost"), unknown=Count("id", filter=Q(cost=None)))
    return CallCosts(found["calls"], found["known"] or Decimal(0), found["unknown"]) if found["calls"] else None


def _replay(trajectory: Trajectory) -> ReplayView | None:
    row = Replay.objects.filter(trajectory=trajectory).select_related("run").order_by("-id").first()
    if row is None:
        return None
    kept = row.differences[:DIFFERENCES]
    return ReplayView(row, [_difference(trajectory, entry) for entry in kept], len(row.differences) - len(kept))


def _difference(trajectory: Trajectory, entry: Mapping[str, object]) -> Difference:
    turn = entry.get("turn")
    return Difference(
        step=step_of_turn(trajectory.text.turns, turn) if isinstance(turn, int) else None,
        what=visible(str(entry.get("what") or "")),
        recorded=visible(without_colours(str(entry.get("recorded"))[:SAID])),
        replayed=visible(without_colours(str(entry.get("replayed"))[:SAID])),
    )
