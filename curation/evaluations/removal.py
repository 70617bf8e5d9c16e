"""What rests on evaluations and splits. An evaluation is deleted with its run."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from curation.evaluations.models import ContaminationCheck, Evaluation, ScreenedAnswer, Split
from curation.projects.access import Access
from curation.projects.models import Deletion, Scope
from curation.projects.removal.rows import (
    Rest,
    RowPages,
    archive_row,
    delete_row,
    describes,
    goes_with,
    register_pages,
    register_removable,
    rests_on,
    what_rests_on,
)
from curation.runs.models import LIVE, Run
from curation.runs.removal import pages_of_runs
from curation.web.ids import find
from curation.web.text.figures import counted

NOUN = "split"


def archive_split(*, access: Access, split: Split, archived: bool) -> Split:
    access.require(Scope.RUN)
    archive_row(access=access, row=split, label=f"split {split.pk}", archived=archived)
    return split


def delete_split(*, access: Access, split: Split) -> Deletion:
    access.require(Scope.RUN)
    label = f"split {split.pk}"
    return delete_row(project=access.project, actor=access.user, row=split, noun=NOUN, label=label)


@rests_on(Split)
def evaluations_and_checks(split: Split) -> Iterable[Rest]:
    slug = split.project.slug
    if split.run is not None and split.run.state in LIVE:
        yield Rest("The split's import is in progress.", reverse("run-page", args=[slug, split.run_id]))
    evaluations = Evaluation.objects.filter(split=split, run__deleting_at=None).count()
    if evaluations:
        use = f"{counted(evaluations, 'evaluation')} {'uses' if evaluations == 1 else 'use'}"
        yield Rest(f"{use} it.", f"{reverse('evaluation-list', args=[slug])}?split={split.pk}")
    against = ContaminationCheck.objects.filter(run__params__training_split=str(split.pk), run__deleting_at=None)
    if checks := against.count():
        compare = f"{counted(checks, 'contamination check')} {'compares' if checks == 1 else 'compare'}"
        yield Rest(f"{compare} another split with it.", reverse("split-list", args=[slug]))


@describes(Split)
def about_split(split: Split) -> dict[str, object]:
    return {"name": split.name, "rows": split.rows_count}


@rests_on(Run)
def uses_of_a_run(run: Run) -> Iterable[Rest]:
    slug = run.project.slug
    for split in Split.objects.filter(run=run, deleting_at=None):
        for rest in what_rests_on(split):
            yield Rest(f"Split {split.name}: {rest.text}", rest.url)
    for split in Split.objects.filter(Q(baseline__evaluation__run=run) | Q(live_baseline__evaluation__run=run)):
        url = reverse("split-page", args=[slug, split.pk])
        yield Rest(f"The evaluations of split {split.name} are compared with it: it has the baseline.", url)
    answers = ScreenedAnswer.objects.filter(call__run=run).exclude(evaluation__run=run)
    evaluations = answers.values("evaluation").distinct().count()
    if evaluations:
        have = f"{counted(evaluations, 'other evaluation')} {'has' if evaluations == 1 else 'have'}"
        yield Rest(f"{have} answers from its calls.", reverse("evaluation-list", args=[slug]))


@goes_with(Run)
def its_splits(run: Run) -> Iterable[QuerySet[Any]]:
    yield Split.objects.filter(run=run, evaluations=None)


register_removable(NOUN, Split, lambda split: True)


def find_evaluation(access: Access, pk: str) -> tuple[Run, str]:
    evaluation = find(Evaluation.objects.of(access.project), pk, "evaluation")
    return evaluation.run, f"evaluation {evaluation.pk}"


def find_split(access: Access, pk: str) -> tuple[Split, str]:
    split = find(Split.objects.of(access.project).select_related("project", "run"), pk, "split")
    return split, f"split {split.pk}"


register_pages("evaluation", pages_of_runs("evaluation-page", "evaluation-list", find_evaluation))
register_pages(
    NOUN,
    RowPages(
        "split-page",
        "split-list",
        find_split,
        archive=lambda access, split, label, archived: archive_split(access=access, split=split, archived=archived),
        delete=lambda access, split, label: delete_split(access=access, split=split),
    ),
)
