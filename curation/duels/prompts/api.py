"""REST calls of prompts, their pull-request records and exclusions."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from curation.duels.models import Exclusion, Prompt, PullRequest
from curation.duels.prompts.exclusions import exclude, include
from curation.duels.prompts.filters import ExclusionList, PromptList, PullRequestList
from curation.projects.access import enter, principal_of
from curation.projects.models import Project, Scope
from curation.web.ids import find

router = Router(tags=["prompts"])
_MESSAGE = {"role": "user", "content": "Fix the rounding of totals."}


class PromptOut(Schema):
    """One agent turn. `exclusion` is the reason why runs skip it, or null."""

    id: str = Field(examples=["4711"])
    source: str = Field(examples=["turns.jsonl"])
    row_offset: int = Field(examples=[16], description="Row of the source, from 0.")
    turn_index: int = Field(examples=[4], description="Index of the reference in the row's messages.")
    instance_id: str = Field(examples=["acme__billing-17"])
    repo: str = Field(examples=["acme/billing"])
    tokens: int = Field(examples=[5120], description="Estimated: characters of the history ÷ 4.")
    has_record: bool
    exclusion: str | None = Field(examples=[None])
    run: str | None = Field(examples=["97"], description="The import that created it.")
    created_at: datetime


class PromptDetail(PromptOut):
    history: list[dict[str, Any]] = Field(examples=[[_MESSAGE]])
    reference: dict[str, Any] = Field(examples=[{"role": "assistant", "content": "THOUGHT: I read the file first."}])


class PromptPage(Schema):
    data: list[PromptOut]
    next_cursor: str | None
    total: int | None = None


class ExclusionRow(Schema):
    instance_id: str = Field(examples=["acme__billing-17"])
    reason: str = Field(examples=["broken environment"])


class ExclusionsIn(Schema):
    exclusions: list[ExclusionRow] = Field(
        description="Up to 500.", examples=[[{"instance_id": "acme__billing-17", "reason": "broken environment"}]]
    )


class InstancesIn(Schema):
    instance_ids: list[str] = Field(description="Up to 500.", examples=[["acme__billing-17"]])


class ExclusionOut(ExclusionRow):
    """`created_by` is null if an import excluded the instance."""

    id: str
    created_by: str | None
    created_at: datetime


class ExclusionPage(Schema):
    data: list[ExclusionOut]
    next_cursor: str | None
    total: int | None = None


class OutcomeOut(Schema):
    instance_id: str
    outcome: str = Field(examples=["added"], description="added, changed or unchanged")


class OutcomesOut(Schema):
    data: list[OutcomeOut]


class RemovedOut(Schema):
    removed: int


class PullRequestOut(Schema):
    id: str
    instance_id: str = Field(examples=["acme__billing-17"])
    repo: str = Field(examples=["acme/billing"])
    title: str = Field(examples=["Round totals half up"])
    commit: str
    files: list[str] = Field(examples=[["billing/totals.py"]])
    patch_tokens: int = Field(examples=[340])


class PullRequestPage(Schema):
    data: list[PullRequestOut]
    next_cursor: str | None
    total: int | None = None


def prompt_out(prompt: Prompt) -> dict[str, object]:
    """Needs `for_list()`."""
    return {
        "id": str(prompt.pk),
        "source": prompt.source,
        "row_offset": prompt.row_offset,
        "turn_index": prompt.turn_index,
        "instance_id": prompt.instance_id,
        "repo": prompt.repo,
        "tokens": prompt.tokens,
        "has_record": getattr(prompt, "has_record", False),
        "exclusion": getattr(prompt, "exclusion", None),
        "run": None if prompt.run_id is None else str(prompt.run_id),
        "created_at": prompt.created_at,
    }


def pull_request_out(row: PullRequest) -> dict[str, object]:
    return {
        "id": str(row.pk),
        "instance_id": row.instance_id,
        "repo": row.repo,
        "title": row.title,
        "commit": row.commit,
        "files": row.files,
        "patch_tokens": row.patch_tokens,
    }


def exclusion_out(row: Exclusion) -> dict[str, object]:
    return {
        "id": str(row.pk),
        "instance_id": row.instance_id,
        "reason": row.reason,
        "created_by": row.created_by.get_username() if row.created_by else None,
        "created_at": row.created_at,
    }


@router.get("/projects/{slug}/prompts", response=PromptPage, exclude_unset=True, summary="List prompts")
def list_prompts(request: HttpRequest, slug: str, params: Query[PromptList]) -> dict[str, object]:
    access = enter(request, slug, Scope.READ)
    return params.page(params.rows(access.project).for_list()).response(prompt_out)


@router.get("/prompts/{prompt_id}", response=PromptDetail, summary="One prompt with its history and reference")
def get_prompt(request: HttpRequest, prompt_id: str) -> dict[str, object]:
    visible = Prompt.objects.filter(project__in=Project.objects.visible_to(principal_of(request).user))
    prompt = find(visible.for_list().select_related("project", "text"), prompt_id, "prompt")
    enter(request, prompt.project, Scope.READ)
    return {**prompt_out(prompt), "history": prompt.text.history, "reference": prompt.text.reference}


@router.get(
    "/projects/{slug}/pull-requests", response=PullRequestPage, exclude_unset=True, summary="List pull-request records"
)
def list_pull_requests(request: HttpRequest, slug: str, params: Query[PullRequestList]) -> dict[str, object]:
    access = enter(request, slug, Scope.READ)
    return params.page(params.narrow(PullRequest.objects.of(access.project))).response(pull_request_out)


@router.get("/projects/{slug}/exclusions", response=ExclusionPage, exclude_unset=True, summary="List exclusions")
def list_exclusions(request: HttpRequest, slug: str, params: Query[ExclusionList]) -> dict[str, object]:
    access = enter(request, slug, Scope.READ)
    rows = Exclusion.objects.filter(project=access.project).select_related("created_by")
    return params.page(rows).response(exclusion_out)


@router.post("/projects/{slug}/exclusions", response=OutcomesOut, summary="Exclude instances, or change their reason")
def post_exclusions(request: HttpRequest, slug: str, body: ExclusionsIn) -> dict[str, object]:
    access = enter(request, slug, Scope.RUN)
    rows = [(row.instance_id, row.reason) for row in body.exclusions]
    results = exclude(project=access.project, rows=rows, user=access.user)
    return {"data": [{"instance_id": result.instance_id, "outcome": result.outcome} for result in results]}


@router.delete("/projects/{slug}/exclusions", response=RemovedOut, summary="Delete exclusions")
def delete_exclusions(request: HttpRequest, slug: str, body: InstancesIn) -> dict[str, object]:
    access = enter(request, slug, Scope.RUN)
    return {"removed": include(project=access.project, instance_ids=body.instance_ids, user=access.user)}
