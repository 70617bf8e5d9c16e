"""Trials of judges: their REST calls and their page's rows."""

from typing import Literal

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router

from curation.duels.trials.kind import TrialRun
from curation.duels.trials.known import held_out, known_duels
from curation.duels.trials.schemas import JudgeTrialOut, TrialPartsOut
from curation.projects.access import Access, enter
from curation.projects.models import Project, Scope
from curation.projects.resource import Resource
from curation.runs.models import Run, RunState
from curation.samples.blind import refuse_pending
from curation.samples.models import Sample


class JudgeTrials(Resource[Run]):
    model, noun, plural, words, tag = Run, "judge_trial", "judge_trials", "trial of a judge", "duels"
    path, row_path = "/judge-trials", ""
    calls, out, reads = ("list",), JudgeTrialOut, Scope.RUN
    about = {
        "list": "Newest first. A run of kind `judge_trial` makes one. While you review blind, it opens when all "
        "samples are decided."
    }

    def rows(self, access: Access) -> QuerySet[Run]:
        refuse_pending(access, Sample.objects.of(access.project), "the trials of judges")
        return Run.objects.of(access.project).filter(kind=TrialRun.name, state=RunState.SUCCEEDED)


trials = JudgeTrials()
router = Router(tags=["duels"])


@router.get("/projects/{slug}/judge-trials/parts", response=TrialPartsOut, summary="Duels to try judges on")
def get_trial_parts(request: HttpRequest, slug: str, known: Literal["audited", "decided"] = "decided") -> TrialPartsOut:
    """`known` is `decided` or `audited`, as for a run."""
    # Reviewers do not learn of audits.
    return parts_of(enter(request, slug, Scope.RUN).project, known)


router.add_router("", trials.router())


def parts_of(project: Project, known: str) -> TrialPartsOut:
    duels = known_duels(project, known)
    sides = held_out(project, duels)
    tasks = {side: {one.task for one in duels if sides[one.task] is side} for side in (False, True)}
    counts = {side: sum(sides[one.task] is side for one in duels) for side in (False, True)}
    return TrialPartsOut(
        tune=counts[False], held_out=counts[True], tune_tasks=len(tasks[False]), held_out_tasks=len(tasks[True])
    )
