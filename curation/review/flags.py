"""The flags of a project as a list to work on."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, ClassVar, Literal

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from ninja import Query, Router, Schema
from pydantic import Field

from curation.notifications.models import NotificationKind
from curation.notifications.notify import notify, notify_mentioned, unknown_mentions_note
from curation.projects.access import Access, enter, project_page
from curation.projects.models import Scope
from curation.review.decisions.state import MAX_COMMENT, refuse_errors
from curation.review.models import Action, Decision, DecisionQuerySet, FlagResolution
from curation.review.queue.lease import lock_sample
from curation.review.workspace.navigation import location_of, page_url
from curation.samples.list.api import enter_sample
from curation.web.lists.filters import ListParams, Words, ids_of, named_list
from curation.web.lists.keyset import KeysetPage
from curation.web.lists.pages import Tab, list_context
from curation.web.problems import Conflict, FieldError
from curation.web.schemas import Id, Out, Page, StrictModel, Username, answer
from curation.web.text.storable import text_errors


@named_list("flags", page="flag-list")
class FlagList(ListParams):
    """Flags that nobody has undone, the newest first."""

    lookups: ClassVar[Mapping[str, str]] = {"sample": "sample_id", "reviewer": "reviewer__username"}

    state: Literal["open", "resolved", "all"] = "open"
    sample: Annotated[Words, ids_of("sample")] = ()
    reviewer: Words = Field(default=(), description="Usernames of those who flagged.")

    def rows(self, access: Access) -> KeysetPage[Decision]:
        rows = self.narrow(flags_of(access))
        if self.state != "all":
            rows = rows.filter(resolution__isnull=self.state == "open")
        return self.page(rows.select_related("reviewer", "sample", "resolution__resolved_by"))


def flags_of(access: Access) -> DecisionQuerySet:
    """Return the project's flags that are not undone. They are few, so they are found by their own index."""
    flags: DecisionQuerySet = Decision.objects.of(access.project).filter(action=Action.FLAG).not_undone()
    return flags


def resolve_flags(*, access: Access, sample_id: int, note: str) -> list[Decision]:
    """Resolve every open flag of the sample with one note, and tell those who flagged it. The sample's status stays.

    Raises `Invalid` for an empty note, `Conflict` where no flag is open.
    """
    note = note.strip()
    errors = text_errors("note", note, at_most=MAX_COMMENT)
    refuse_errors(errors or ([] if note else [FieldError("note", "is empty; say how the flag was resolved")]))
    with transaction.atomic():
        sample = lock_sample(access.project, sample_id)
        flags = list(flags_of(access).filter(sample=sample, resolution=None).select_related("reviewer").order_by("id"))
        if not flags:
            raise Conflict(f"Sample {sample.pk} has no open flag.", code="no_open_flag")
        for flag in flags:
            FlagResolution.objects.create(flag=flag, resolved_by=access.user, note=note)
        access.record("sample.resolve_flags", str(sample.pk), {"flags": [flag.pk for flag in flags]})
        about, link = f"sample {sample.pk}", reverse("sample-page", args=[access.project.slug, sample.pk])
        flagged = {flag.reviewer_id for flag in flags}
        kind, what = NotificationKind.FLAG_RESOLVED, "resolved your flag on"
        notify(access=access, user_ids=flagged, kind=kind, what=what, about=about, link=link)
        notify_mentioned(access=access, text=note, about=about, link=link)
    return flags


@project_page(Scope.READ, "GET")
def flag_list(request: HttpRequest, access: Access) -> HttpResponse:
    params = FlagList.from_query(request.GET)
    flags = flags_of(access)
    counts = {"open": flags.filter(resolution=None).count(), "resolved": flags.filter(resolution__isnull=False).count()}
    context = {
        **list_context(request, params, params.rows(access), f"/api/v1/projects/{access.project.slug}/flags"),
        "tabs": [
            Tab(f"{state.capitalize()} {count:,}", f"{request.path}?state={state}", params.state == state)
            for state, count in counts.items()
        ],
        "may_resolve": access.may(Scope.REVIEW),
    }
    return render(request, "review/flags.html", context)


@project_page(Scope.REVIEW, "POST")
def flags_resolve(request: HttpRequest, access: Access, pk: int) -> HttpResponse:
    resolve_flags(access=access, sample_id=pk, note=request.POST.get("note", ""))
    messages.success(request, f"Resolved the flags of sample {pk}.")
    if said := unknown_mentions_note(access, request.POST.get("note", ""), f"sample {pk}"):
        messages.warning(request, said)
    slug, location = access.project.slug, location_of(request.POST)
    if request.POST.get("of") == "sample":  # the page of the sample, which stays open
        return redirect(page_url(slug, location, pk))
    return redirect("flag-list", slug)


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


class ResolveIn(StrictModel):
    note: str = Field(examples=["The prompt was cut; excluded it."], description="How it was resolved.")


@router.get("/projects/{slug}/flags", response=Page[FlagOut], summary="Flags to work on")
def list_flags(request: HttpRequest, slug: str, params: Query[FlagList]) -> dict[str, object]:
    """Open ones by default; `state=resolved` or `state=all`. `count=true` adds the total."""
    return params.rows(enter(request, slug, Scope.READ)).response()


@router.post(
    "/samples/{sample_id}/flags/resolve",
    response=answer(
        "ResolvedOut", resolved=Annotated[list[str], Field(description="Ids of the flags", examples=[["502"]])]
    ),
    summary="Resolve a sample's open flags",
)
def post_resolve_flags(request: HttpRequest, sample_id: str, body: ResolveIn) -> dict[str, object]:
    """409 `no_open_flag` without one. Who flagged it is notified."""
    access, sample = enter_sample(request, sample_id, Scope.REVIEW)
    return {"resolved": [str(flag.pk) for flag in resolve_flags(access=access, sample_id=sample.pk, note=body.note)]}
