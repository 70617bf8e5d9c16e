"""The tasks of a live evaluation: admitted scenarios, the tasks of a split, or seeds."""

from dataclasses import dataclass, field

from curation.evaluations.models import Split, SplitRow
from curation.evaluations.params import EvaluateParams
from curation.evaluations.screen.stage import chosen_rows
from curation.projects.models import Project
from curation.runs.kinds import Json
from curation.trajectories.params import matching_scenarios
from curation.web.ids import id_number
from curation.web.lists.id_list import IdList

LONGEST_TIER = 100


@dataclass(frozen=True, slots=True)
class LiveTask:
    """`key` identifies the task in every evaluation, to pair two of them. `target_id` is its scenario or row.

    `reset` is sent with a server's reset; servers ignore fields that they do not know.
    """

    key: str
    tier: str = ""
    target_id: int | None = None
    reset: Json = field(default_factory=dict)


def tasks_of(project: Project, params: EvaluateParams, split: Split | None) -> list[LiveTask]:
    """The tasks in order; every model plays each once."""
    if params.environment == "sandbox":
        return _scenarios(project, params)
    if split is not None:
        return _of_split(split, params)
    return [LiveTask(f"seed {params.seed + n}", reset={"seed": params.seed + n}) for n in range(params.episodes)]


def _scenarios(project: Project, params: EvaluateParams) -> list[LiveTask]:
    rows = matching_scenarios(project, params.filter).order_by("id").values_list("pk", "name", "axes")
    return [LiveTask(name, str(axes.get("difficulty", ""))[:LONGEST_TIER], pk) for pk, name, axes in rows]


def _of_split(split: Split, params: EvaluateParams) -> list[LiveTask]:
    """One episode for each task; its first row represents it."""
    tasks: dict[str, LiveTask] = {}
    chosen = SplitRow.objects.filter(pk__in=IdList(chosen_rows(split, params))).order_by("number", "turn")
    for row in chosen:
        task_id = id_number(row.task_id)
        reset = (
            {"task_id": row.task_id if task_id is None else task_id, "seed": params.seed}
            if row.task_id
            else {"seed": params.seed + row.number}
        )
        tasks.setdefault(row.task, LiveTask(row.task, row.tier, row.pk, reset))
    return list(tasks.values())
