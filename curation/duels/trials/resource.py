"""Trials of judges: their REST calls and their page."""

from typing import Literal

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import Router

from curation.duels.trials.kind import TrialRun
from curation.duels.trials.known import held_out, known_duels
from curation.duels.trials.schemas import JudgeTrialOut
from curation.projects.access import Access, enter, project_page
from curation.projects.models import Project, Scope
from curation.projects.resource import Resource
from curation.runs.kinds import kind_of
from curation.runs.models import Run, RunState
from curation.samples.blind import has_hidden, refuse_pending, refuse_undecided
from curation.samples.models import Sample
from curation.web.schemas import answer

SHOWN = 50


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


@router.get(
    "/projects/{slug}/judge-trials/parts",
    response=answer("TrialPartsOut", tune=int, held_out=int, tune_tasks=int, held_out_tasks=int),
    summary="Duels to try judges on",
)
def get_trial_parts(
    request: HttpRequest, slug: str, known: Literal["audited", "decided"] = "decided"
) -> dict[str, int]:
    """Duels with a known outcome: `known` is `decided` or `audited`, as for a run. Each task is in one part for
    ever."""
    # Reviewers do not learn of audits.
    return parts_of(enter(request, slug, Scope.RUN).project, known)


router.add_router("", trials.router())


def parts_of(project: Project, known: str) -> dict[str, int]:
    duels = known_duels(project, known)
    sides = held_out(project, duels)
    tasks = {side: {one.task for one in duels if sides[one.task] is side} for side in (False, True)}
    counts = {side: sum(sides[one.task] is side for one in duels) for side in (False, True)}
    return {
        "tune": counts[False],
        "held_out": counts[True],
        "tune_tasks": len(tasks[False]),
        "held_out_tasks": len(tasks[True]),
    }


@project_page(Scope.RUN, "GET", closed_to=has_hidden)
def trial_list(request: HttpRequest, access: Access) -> HttpResponse:
    refuse_undecided(access)
    rows = trials.shown(access, list(trials.rows(access).order_by("-pk")[:SHOWN]))
    project = access.project
    context = {
        "trials": rows,
        "decided": parts_of(project, "decided"),
        "audited": parts_of(project, "audited"),
        "launch_url": kind_of("judge_trial").form_url(project),
        "cascade_url": kind_of("cascade").form_url(project),
        "api_path": f"/api/v1/projects/{project.slug}/judge-trials",
    }
    return render(request, "duels/trials/list.html", context)
