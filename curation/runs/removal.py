"""Runs as rows that can be archived and deleted. Their results are registered by the apps above."""

from collections.abc import Callable, Iterable

from django.urls import reverse

from curation.projects.access import Access
from curation.projects.models import Deletion
from curation.projects.removal.rows import (
    Rest,
    RowPages,
    archive_row,
    delete_row,
    describes,
    register_pages,
    register_removable,
    rests_on,
)
from curation.runs.kinds import kind_of
from curation.runs.models import LIVE, Call, Item, ItemState, Run
from curation.web.ids import find
from curation.web.lists.id_list import IdList
from curation.web.text.figures import counted, exact_money

NOUN = "run"


def archive_run(*, access: Access, run: Run, archived: bool, label: str = "") -> Run:
    """Raises `Conflict` for a run in progress."""
    access.require(kind_of(run.kind).scope)
    archive_row(access=access, row=run, label=label or label_of(run), archived=archived)
    return run


def delete_run(*, access: Access, run: Run, label: str = "") -> Deletion:
    """Begin to delete the run and its results. `label` names its export or evaluation, if that is to be deleted."""
    access.require(kind_of(run.kind).scope)
    label = label or label_of(run)
    return delete_row(project=access.project, actor=access.user, row=run, noun=NOUN, label=label)


def label_of(run: Run) -> str:
    return f"import {run.pk}" if run.kind == "import" else f"run {run.pk}"


@rests_on(Run)
def live_work(run: Run) -> Iterable[Rest]:
    """A live run still writes, and any other may be reading the results of this one."""
    url = reverse("run-list", args=[run.project.slug])
    if run.state in LIVE:
        yield Rest(
            "This run is in progress. Cancel it, then delete it.", reverse("run-page", args=[run.project.slug, run.pk])
        )
    others = Run.objects.live().filter(project=run.project_id).exclude(pk=run.pk).count()
    if others and kind_of(run.kind).feeds_others:
        are = f"{counted(others, 'other run')} {'is' if others == 1 else 'are'}"
        yield Rest(f"{are} in progress and may use its results. Wait, or cancel them.", f"{url}?state=queued,running")


@rests_on(Run)
def calls_that_others_reuse(run: Run) -> Iterable[Rest]:
    """Items of other runs that its recorded calls answered: without them, nobody could trace the results of these
    runs."""
    others = Item.objects.filter(run__project=run.project_id, run__deleting_at=None, result__has_key="reused_calls")
    reused: dict[int, set[int]] = {}
    for item in others.exclude(run=run).only("run_id", "result").iterator():
        reused.setdefault(item.run_id, set()).update(item.reused_calls)
    for other, calls in sorted(reused.items()):
        if count := Call.objects.filter(run=run, pk__in=IdList(sorted(calls))).count():
            of_its = f"{count:,} of its calls"
            yield Rest(f"Run {other} has answers from {of_its}.", reverse("run-page", args=[run.project.slug, other]))


@describes(Run)
def about(run: Run) -> dict[str, object]:
    return {
        "kind": run.kind,
        "params": run.params,
        "launched": run.created_at.isoformat(),
        "items": run.items_total,
        "calls": Call.objects.filter(run=run).count(),
        "cost": exact_money(run.cost),
        "cost_unknown_calls": run.cost_unknown_calls,
    }


def _is_quiet(run: Run) -> bool:
    return not Item.objects.filter(run=run, state=ItemState.CLAIMED).exists()


def find_run(access: Access, pk: str) -> tuple[Run, str]:
    run = find(Run.objects.of(access.project).select_related("project"), pk, "run")
    return run, label_of(run)


def pages_of_runs(page: str, list_page: str, find_row: Callable[[Access, str], tuple[Run, str]]) -> RowPages:
    """The pages of runs, or of rows that live and go with their run."""
    return RowPages(
        page,
        list_page,
        find_row,
        archive=lambda access, run, label, archived: archive_run(
            access=access, run=run, archived=archived, label=label
        ),
        delete=lambda access, run, label: delete_run(access=access, run=run, label=label),
    )


register_removable(NOUN, Run, _is_quiet)
register_pages(NOUN, pages_of_runs("run-page", "run-list", find_run))
