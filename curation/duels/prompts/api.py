from django.http import HttpRequest
from ninja import Query, Router

from curation.duels.models import Exclusion, Prompt
from curation.duels.prompts.doubts import clear_doubts
from curation.duels.prompts.exclusions import OutcomeOut, exclude, include
from curation.duels.prompts.filters import PromptList, PullRequestList
from curation.duels.prompts.queries import reference_shown_to
from curation.duels.prompts.schemas import (
    ExclusionOut,
    ExclusionsIn,
    InstancesIn,
    PromptDetail,
    PromptOut,
    PullRequestOut,
)
from curation.projects.access import enter, principal_of
from curation.projects.models import Project, Scope
from curation.web.ids import find
from curation.web.lists.filters import ListParams
from curation.web.schemas import Page, answer

router = Router(tags=["prompts"])


@router.get("/projects/{slug}/prompts", response=Page[PromptOut], summary="List prompts")
def list_prompts(request: HttpRequest, slug: str, params: Query[PromptList]) -> dict[str, object]:
    access = enter(request, slug, Scope.READ)
    return params.shown(access.project).response()


@router.get("/prompts/{prompt_id}", response=PromptDetail, summary="One prompt with its history and reference")
def get_prompt(request: HttpRequest, prompt_id: str) -> PromptDetail:
    visible = Prompt.objects.filter(project__in=Project.objects.visible_to(principal_of(request).user))
    prompt = find(visible.for_list().select_related("project", "text__session"), prompt_id, "prompt")
    reference = reference_shown_to(enter(request, prompt.project, Scope.READ), prompt)
    return PromptDetail.model_validate(prompt).model_copy(update={"reference": reference})


@router.get("/projects/{slug}/pull-requests", response=Page[PullRequestOut], summary="List pull-request records")
def list_pull_requests(request: HttpRequest, slug: str, params: Query[PullRequestList]) -> dict[str, object]:
    access = enter(request, slug, Scope.READ)
    return params.page(params.rows(access.project)).response()


@router.post(
    "/projects/{slug}/pull-requests/clear",
    response=answer("ClearedOut", cleared=int),
    summary="Let challengers use doubtful records",
)
def post_cleared_records(request: HttpRequest, slug: str, body: InstancesIn) -> dict[str, object]:
    access = enter(request, slug, Scope.RUN)
    return {"cleared": clear_doubts(project=access.project, instance_ids=body.instance_ids, user=access.user)}


@router.get("/projects/{slug}/exclusions", response=Page[ExclusionOut], summary="List exclusions")
def list_exclusions(request: HttpRequest, slug: str, params: Query[ListParams]) -> dict[str, object]:
    access = enter(request, slug, Scope.READ)
    rows = Exclusion.objects.filter(project=access.project).select_related("created_by")
    return params.page(rows).response()


@router.post(
    "/projects/{slug}/exclusions",
    response=answer("OutcomesOut", data=list[OutcomeOut]),
    summary="Exclude instances, or change their reason",
)
def post_exclusions(request: HttpRequest, slug: str, body: ExclusionsIn) -> dict[str, object]:
    access = enter(request, slug, Scope.RUN)
    rows = [(row.instance_id, row.reason) for row in body.exclusions]
    results = exclude(project=access.project, rows=rows, user=access.user)
    return {"data": [{"instance_id": result.instance_id, "outcome": result.outcome} for result in results]}


@router.delete("/projects/{slug}/exclusions", response=answer("RemovedOut", removed=int), summary="Delete exclusions")
def delete_exclusions(request: HttpRequest, slug: str, body: InstancesIn) -> dict[str, object]:
    access = enter(request, slug, Scope.RUN)
    return {"removed": include(project=access.project, instance_ids=body.instance_ids, user=access.user)}
