"""Tasks: attempts of each, and how many were solved, by REST and for a page."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import ClassVar

from django.db.models import Count, Exists, OuterRef
from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from curation.projects.access import Access, enter
from curation.projects.models import Project, Scope
from curation.samples.blind import without_pending
from curation.trajectories.filters import TrajectoryFilter
from curation.trajectories.models import Outcome, Trajectory, TrajectoryQuerySet, outcomes_named
from curation.trajectories.pages.agents import attempts_of
from curation.web.lists.filters import ListParams
from curation.web.lists.keyset import KeysetPage
from curation.web.schemas import Page
from judging.statistics.rates import pass_at_k, pass_hat_k, wilson

router = Router(tags=["trajectories"])


class TaskList(TrajectoryFilter, ListParams):
    sorts: ClassVar[Sequence[str]] = ("id", "-id")
    beside: ClassVar[frozenset[str]] = ListParams.beside | {"k"}

    k: int = Field(default=5, ge=1, le=1000, description="Attempts of `pass_at_k`, or all where a task has fewer.")


class PassAtKOut(Schema):
    """The share of sets of `k` attempts of which one is solved (Chen et al. 2021), unbiased, with its 95 % interval:
    Wilson's of `pass_at_1`, and of more attempts from its bounds."""

    k: int = Field(examples=[5])
    value: float = Field(examples=[0.9])
    low: float = Field(examples=[0.4])
    high: float = Field(examples=[1.0])


class TaskAttemptsOut(Schema):
    """A task. Errors of the machine and unknown outcomes are no attempts."""

    task: str = Field(examples=["winnow/sum-orders"])
    attempts: int = Field(examples=[4])
    solved: int = Field(examples=[2])
    errors: int = Field(examples=[0])
    unknown: int = Field(examples=[0])
    pass_at_1: PassAtKOut | None = Field(description="Null without an attempt.")
    pass_at_k: PassAtKOut | None
    pass_hat_k: PassAtKOut | None = Field(description="The share of sets of `k` attempts of which all are solved.")


@router.get(
    "/projects/{slug}/tasks", response=Page[TaskAttemptsOut], exclude_unset=True, summary="List tasks with pass rates"
)
def list_tasks(request: HttpRequest, slug: str, params: Query[TaskList]) -> dict[str, object]:
    """Those who review blind get no pending samples, here as in the list of trajectories."""
    access = enter(request, slug, Scope.READ)
    page, counts = tasks_of(access, params)
    return page.response(lambda row: task_out(row.task, counts[row.task], params.k))


def tasks_of(access: Access, params: TaskList) -> tuple[KeysetPage[Trajectory], dict[str, dict[str, int]]]:
    """Return the first trajectory of each task of the page, and the outcomes of each task by their number."""
    rows = without_pending(access, params.apply(access.project), "sample")
    page = params.page(first_of_tasks(rows, access.project))
    return page, count_outcomes(rows, [row.task for row in page.rows])


def first_of_tasks(rows: TrajectoryQuerySet, project: Project) -> TrajectoryQuerySet:
    """Return the first of the trajectories of each task, in the order of their ids."""
    earlier = rows.order_by().filter(project=project, task=OuterRef("task"), pk__lt=OuterRef("pk"))
    return rows.exclude(task="").exclude(Exists(earlier))


def count_outcomes(rows: TrajectoryQuerySet, tasks: Iterable[str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    counted = rows.order_by().filter(task__in=list(tasks)).values_list("task", "outcome").annotate(n=Count("pk"))
    for task, outcome, number in counted:
        found[task][outcome] = number
    return found


def task_out(task: str, counts: dict[str, int], k: int) -> dict[str, object]:
    tried = attempts_of(counts)
    solved, attempts = tried.solved, tried.attempts
    errors = sum(counts.get(outcome, 0) for outcome in (*outcomes_named(Outcome.ERROR), Outcome.TIMEOUT))
    row: dict[str, object] = {"task": task, "attempts": attempts, "solved": solved, "errors": errors}
    row |= {"unknown": counts.get(Outcome.UNKNOWN, 0), "pass_at_1": None, "pass_at_k": None, "pass_hat_k": None}
    if attempts:
        share, k = wilson(solved, attempts), min(k, attempts)
        row["pass_at_1"] = {"k": 1, "value": tried.rate, "low": share.low, "high": share.high}
        bounds = {"low": 1 - (1 - share.low) ** k, "high": 1 - (1 - share.high) ** k}
        row["pass_at_k"] = {"k": k, "value": pass_at_k(tried, k), **bounds}
        every = {"low": share.low**k, "high": share.high**k}
        row["pass_hat_k"] = {"k": k, "value": pass_hat_k(tried, k), **every}
    return row
