from datetime import datetime

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from curation.projects.access import enter
from curation.projects.models import Scope
from curation.review.flags.resolve import FlagList, resolve_flags
from curation.samples.list.api import enter_sample
from curation.web.schemas import Id, Out, Page, Strict, Username

router = Router(tags=["review"])


class ResolutionOut(Schema):
    resolved_by: Username = Field(examples=["demo"])
    note: str = Field(examples=["The prompt was cut; excluded it."])
    created_at: datetime


class FlagOut(Out):
    """`id` is the decision's. `resolution` is null while the flag is open."""

    id: Id = Field(examples=["502"])
    sample: Id = Field(validation_alias="sample_id", examples=["4711"])
    reviewer: Username = Field(examples=["ann"])
    reason: str = Field(examples=["the prompt looks cut"])
    comment: str
    created_at: datetime
    resolution: ResolutionOut | None = None


class ResolveIn(Strict):
    note: str = Field(examples=["The prompt was cut; excluded it."], description="How it was resolved.")


class ResolvedOut(Schema):
    resolved: list[str] = Field(description="Ids of the flags", examples=[["502"]])


@router.get("/projects/{slug}/flags", response=Page[FlagOut], summary="Flags to work on")
def list_flags(request: HttpRequest, slug: str, params: Query[FlagList]) -> dict[str, object]:
    """Open ones by default; `state=resolved` or `state=all`. `count=true` adds the total."""
    return params.rows(enter(request, slug, Scope.READ)).response()


@router.post("/samples/{sample_id}/flags/resolve", response=ResolvedOut, summary="Resolve a sample's open flags")
def post_resolve_flags(request: HttpRequest, sample_id: str, body: ResolveIn) -> dict[str, object]:
    """409 `no_open_flag` without one. Who flagged it is notified."""
    access, sample = enter_sample(request, sample_id, Scope.REVIEW)
    return {"resolved": [str(flag.pk) for flag in resolve_flags(access=access, sample_id=sample.pk, note=body.note)]}
