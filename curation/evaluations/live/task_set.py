"""The tasks of a live evaluation: admitted scenarios, the tasks of a split, or seeds."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from curation.evaluations.live.reset import OF_A_SEED, OF_A_TASK, fill_reset, row_values
from curation.evaluations.models import Split, SplitRow
from curation.evaluations.params import SANDBOX, EvaluateParams
from curation.evaluations.screen.stage import chosen_rows
from curation.projects.models import Project
from curation.runs.kinds import Json
from curation.trajectories.params import matching_scenarios
from curation.web.ids import IdList

LONGEST_TIER = 100
DEFAULT_SEEDS = 10


@dataclass(frozen=True, slots=True)
class LiveTask:
    """`key` identifies the task in every evaluation, to pair two of them; `repeat` counts its episodes from 0.
    `target_id` is its scenario or row, `reset` is sent with a server's reset."""

    key: str
    tier: str = ""
    target_id: int | None = None
    reset: Json = field(default_factory=dict)
    repeat: int = 0


def tasks_of(project: Project, params: EvaluateParams, split: Split | None) -> list[LiveTask]:
    """The episodes of each model in order: every task `episodes` times, one after the other. Raises `Invalid` for a
    reset that cannot be filled in."""
    if params.environment == SANDBOX:
        return [LiveTask(*task, repeat=n) for task in _scenarios(project, params) for n in _repeats(params)]
    if split is not None:
        rows = _rows_of_tasks(split, params)
        return [_of_row(row, params, repeat) for row in rows for repeat in _repeats(params)]
    template = params.reset_template or OF_A_SEED
    seeds = range(params.seed, params.seed + (params.episodes or DEFAULT_SEEDS))
    return [LiveTask(f"seed {seed}", reset=fill_reset(template, row=None, seed=seed, repeat=0)) for seed in seeds]


def _repeats(params: EvaluateParams) -> range:
    return range(params.episodes or 1)


def _scenarios(project: Project, params: EvaluateParams) -> Iterator[tuple[str, str, int]]:
    rows = matching_scenarios(project, params.filter).order_by("id").values_list("pk", "name", "axes")
    return ((name, str(axes.get("difficulty", ""))[:LONGEST_TIER], pk) for pk, name, axes in rows)


def _rows_of_tasks(split: Split, params: EvaluateParams) -> list[SplitRow]:
    """The first row of each task represents it."""
    chosen = SplitRow.objects.filter(pk__in=IdList(chosen_rows(split, params))).order_by("number", "turn")
    first: dict[str, SplitRow] = {}
    for row in chosen.select_related("text"):
        first.setdefault(row.task, row)
    return list(first.values())


def _of_row(row: SplitRow, params: EvaluateParams, repeat: int) -> LiveTask:
    # A row without a task's id is a task of its own, so it gets a seed of its own.
    seed = params.seed + repeat + (0 if row.task_id else row.number)
    template = params.reset_template or (OF_A_TASK if row.task_id else OF_A_SEED)
    reset = fill_reset(template, row=row_values(row), seed=seed, repeat=repeat)
    return LiveTask(row.task, row.tier, row.pk, reset, repeat)
