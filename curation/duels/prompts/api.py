from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from curation.duels.models import Exclusion, Prompt
from curation.duels.prompts.doubts import clear_doubts
from curation.duels.prompts.exclusions import OutcomeOut, exclude, include
from curation.duels.prompts.filters import PromptList, PullRequestList
from curation.duels.prompts.queries import reference_shown_to
from curation.projects.access import enter, principal_of
from curation.projects.models import Project, Scope
from curation.web.ids import find
from curation.web.lists.filters import ListParams
from curation.web.schemas import Id, Out, Page, StrictModel, Username, answer

_MESSAGE = {"role": "user", "content": "Fix the rounding of totals."}


class PromptOut(Out):
    """One agent turn. `exclusion` is the reason why runs skip it, or null."""

    id: Id = Field(examples=["4711"])
    source: str = Field(examples=["turns.jsonl"])
    row_offset: int = Field(examples=[16], description="Row of the source, from 0.")
    turn_index: int = Field(examples=[4], description="Index of the reference in the row's messages.")
    instance_id: str = Field(examples=["acme__billing-17"])
    repo: str = Field(examples=["acme/billing"])
    tokens: int = Field(examples=[5120], description="Estimated: characters of the history ÷ 4.")
    has_record: bool = False
    doubt: str | None = Field(None, examples=[None], description="Why no challenger uses the record, or null.")
    exclusion: str | None = Field(None, examples=[None])
    run: Id | None = Field(validation_alias="run_id", examples=["97"], description="The import that created it.")
    created_at: datetime


class PromptDetail(PromptOut):
    history: list[dict[str, Any]] = Field(validation_alias="text.history", examples=[[_MESSAGE]])
    reference: dict[str, Any] | None = Field(
        None,
        examples=[{"role": "assistant", "content": "THOUGHT: I read the file first."}],
        description="Null while you review blind and it is one side of a pending sample.",
    )
    tools: list[dict[str, Any]] = Field(
        validation_alias="text.tools",
        examples=[[{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]],
        description="Functions that a model may call, in OpenAI's form.",
    )


class ExclusionRow(StrictModel):
    instance_id: str = Field(examples=["acme__billing-17"])
    reason: str = Field(examples=["broken environment"])


class ExclusionsIn(StrictModel):
    exclusions: list[ExclusionRow] = Field(
        description="Up to 500.", examples=[[{"instance_id": "acme__billing-17", "reason": "broken environment"}]]
    )


class InstancesIn(StrictModel):
    instance_ids: list[str] = Field(description="Up to 500.", examples=[["acme__billing-17"]])


class ExclusionOut(ExclusionRow):
    """`created_by` is null if an import excluded the instance."""

    id: Id
    created_by: Username | None
    created_at: datetime


class PullRequestOut(Out):
    id: Id
    instance_id: str = Field(examples=["acme__billing-17"])
    repo: str = Field(examples=["acme/billing"])
    title: str = Field(examples=["Round totals half up"])
    commit: str
    files: list[str] = Field(examples=[["billing/totals.py"]])
    patch_tokens: int = Field(examples=[340])
    doubtful: bool = Field(
        validation_alias="is_doubtful", description="No challenger uses it until a curator clears it."
    )
    doubt: str = Field(examples=[""], description="Why it may belong to another task; also after it was cleared.")


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
