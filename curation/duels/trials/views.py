"""The page of trials: the duels to try on, and each trial before and after."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from curation.duels.trials.resource import parts_of, trials
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.runs.kinds import kind_of
from curation.samples.blind import refuse_undecided

SHOWN = 50


@project_page(Scope.RUN, "GET", refuses=refuse_undecided)
def trial_list(request: HttpRequest, access: Access) -> HttpResponse:
    refuse_undecided(access, request.GET)
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
