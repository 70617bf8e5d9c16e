"""The progress of a run, for its page and the command line: stages, rate, time left."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from curation.runs.calls.move import STAGES
from curation.runs.kinds import stages_of
from curation.runs.models import LIVE, OPEN, Item, ItemState, Run

# The rate is measured over the last minute.
RATE_WINDOW = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class StageProgress:
    """The items of one stage by state. `state` is shown: waiting, at work, paused (every open item waits
    for an endpoint), stopped or done. `first` is when its first item was begun, `last` when its newest one ended."""

    name: str
    total: int
    done: int
    failed: int
    skipped: int
    claimed: int
    state: str
    tone: str
    first: datetime | None
    last: datetime | None

    @property
    def seconds(self) -> float | None:
        return None if self.first is None or self.last is None else (self.last - self.first).total_seconds()

    @property
    def ended(self) -> int:
        return self.done + self.failed + self.skipped


@dataclass(frozen=True, slots=True)
class RunProgress:
    """`rate` in items per second; `seconds_left` of the current stage, None if unknown."""

    stages: list[StageProgress]
    live: bool
    rate: float | None
    seconds_left: float | None

    @property
    def current(self) -> StageProgress | None:
        return next((stage for stage in self.stages if stage.state in ("at work", "paused")), None)

    @property
    def paused(self) -> bool:
        return self.current is not None and self.current.state == "paused"


def progress_of(run: Run) -> RunProgress:
    """Read the progress in two queries, by the index of the run's items; of a run whose items were moved to a file, in
    none."""
    counted: dict[str, dict[str, int]] = {}
    times: dict[str, list[datetime]] = {}
    rows = STAGES.validate_python(run.moved["stages"]) if run.moved else Item.objects.filter(run=run).by_stage()
    for stage, state, number, first, last in rows:
        counted.setdefault(stage, {})[state] = number
        times.setdefault(stage, []).extend(at for at in (first, last) if at is not None)
    live = run.state in LIVE
    names = [stage.name for stage in stages_of(run)]
    at = names.index(run.stage) if run.stage in names else len(names)
    stages = [
        _stage(name, counted.get(name, {}), times.get(name, []), index, at, live) for index, name in enumerate(names)
    ]
    # Items that no stage works on, such as the bad rows of an import.
    stages += [_stage(name, states, [], 0, 1, live) for name, states in counted.items() if name not in names]
    rate = _rate(run) if live else None
    current = stages[at] if live and at < len(stages) else None
    left = (current.total - current.ended) / rate if current and rate else None
    return RunProgress(stages, live, rate, left)


def _stage(name: str, states: dict[str, int], times: list[datetime], index: int, at: int, live: bool) -> StageProgress:
    state, tone = ("waiting", "") if index > at else ("done", "good")
    if index == at:
        open_items = sum(states.get(open_state, 0) for open_state in OPEN)
        if live:
            state, tone = ("paused" if 0 < open_items == states.get(ItemState.WAITING, 0) else "at work"), "accent"
        else:
            state, tone = ("stopped", "") if open_items else ("done", "good")
    return StageProgress(
        name=name,
        total=sum(states.values()),
        done=states.get(ItemState.DONE, 0),
        failed=states.get(ItemState.FAILED, 0),
        skipped=states.get(ItemState.SKIPPED, 0),
        claimed=states.get(ItemState.CLAIMED, 0),
        state=state,
        tone=tone,
        first=min(times, default=None),
        last=max(times, default=None),
    )


def _rate(run: Run) -> float | None:
    since = timezone.now() - RATE_WINDOW
    if run.started_at is not None:
        since = max(since, run.started_at)
    ended = Item.objects.filter(run=run, stage=run.stage, state=ItemState.DONE, finished_at__gte=since).count()
    seconds = (timezone.now() - since).total_seconds()
    return ended / seconds if ended and seconds > 0.5 else None
