"""Invitations: their pages, under Settings → Members and at the address where one is accepted, and REST calls."""

from datetime import datetime

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST
from ninja import Query, Router, Schema, Status
from pydantic import Field

from curation.projects.access import Access, enter, principal_of, project_page
from curation.projects.invitations.invite import (
    DAYS,
    MAX_DAYS,
    accept_invitation,
    invitation_for,
    invite,
    revoke_invitation,
)
from curation.projects.models import Invitation, Role, Scope
from curation.projects.pages.schemas import STAMP, MemberOut
from curation.web.forms import ProblemForm
from curation.web.http.idempotency import shown_once
from curation.web.lists.filters import ListParams
from curation.web.problems import NotAllowed, NotFound
from curation.web.schemas import Id, Out, Page, StrictModel, Username


class InvitationForm(ProblemForm):
    role = forms.ChoiceField(choices=Role.choices, initial=Role.REVIEWER)
    username = forms.CharField(
        required=False,
        label="Username",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="Only the user of this name can accept. Leave empty to let anyone with the link accept, once.",
    )
    note = forms.CharField(required=False, help_text="Whom it is for, such as a name or an e-mail address.")
    expires_in_days = forms.IntegerField(initial=DAYS, label="Expires in days")


@project_page(Scope.ADMIN, "POST")
def invitation_revoke(request: HttpRequest, access: Access, invitation_id: str) -> HttpResponse:
    revoke_invitation(access=access, invitation_id=invitation_id)
    messages.success(request, "The invitation is revoked.")
    return redirect("member-list", access.project.slug)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    """The page behind a link."""
    user = principal_of(request).user
    if request.method == "POST":
        return _accepted(request, secret=secret)
    try:
        row = invitation_for(user, secret=secret)
    except NotFound as gone:
        return render(request, "projects/invitations/page.html", {"refusal": gone.detail}, status=404)
    return render(request, "projects/invitations/page.html", {"row": row})


@login_required
@require_POST
def invitation_accept(request: HttpRequest, invitation_id: str) -> HttpResponse:
    """Accept an invitation for the caller's name, from the list of projects."""
    return _accepted(request, invitation_id=invitation_id)


def _accepted(request: HttpRequest, **which: str) -> HttpResponse:
    member = accept_invitation(principal_of(request).user, **which)
    messages.success(request, f"You are now a member of {member.project.name}, as {member.get_role_display()}.")
    return redirect("overview", member.project.slug)


class InvitationIn(StrictModel):
    role: str = Field(Role.REVIEWER.value, examples=["reviewer"], description="viewer, reviewer, curator or admin")
    username: str = Field("", examples=["ada"], description="Only the user of this name can accept it.")
    note: str = Field("", examples=["Ada from the data team"], description="Whom it is for, for the admins.")
    expires_in_days: int = Field(DAYS, examples=[7], description=f"1 to {MAX_DAYS}.")


class InvitationOut(Schema):
    id: Id = Field(examples=["3"])
    role: str = Field(examples=["reviewer"])
    username: str = Field(examples=["ada"])
    note: str
    state: str = Field(examples=["pending"], description="pending, accepted or expired")
    invited_by: Username = Field(examples=["grace"])
    accepted_by: Username | None = Field(examples=["ada"])
    expires_at: datetime = Field(examples=[STAMP])
    created_at: datetime = Field(examples=[STAMP])


class NewInvitationOut(InvitationOut):
    link: str | None = Field(
        examples=["https://winnow.example.org/invitations/…/"],
        description="Shown once; null in the response to a repeated `Idempotency-Key`.",
    )


class ReceivedInvitationOut(Out):
    id: Id = Field(examples=["3"])
    project: str = Field(examples=["Shell agents"], validation_alias="project.name")
    role: str = Field(examples=["reviewer"])
    invited_by: Username = Field(examples=["grace"])
    expires_at: datetime = Field(examples=[STAMP])


class AcceptIn(StrictModel):
    """The last part of the link, or the id of an invitation for your name."""

    secret: str = Field("", examples=["x3Ua…"], max_length=200)
    id: str = Field("", examples=[""], max_length=18)


router = Router(tags=["members"])


@router.get("/projects/{slug}/invitations", response=Page[InvitationOut], summary="Invitations")
def list_invitations(request: HttpRequest, slug: str, params: Query[ListParams]) -> dict[str, object]:
    rows = Invitation.objects.filter(project=enter(request, slug, Scope.ADMIN).project)
    return params.page(rows.select_related("invited_by", "accepted_by")).response()


@router.post(
    "/projects/{slug}/invitations",
    response={201: NewInvitationOut},
    summary="Invite a person; the link is shown only once",
)
def post_invitation(request: HttpRequest, slug: str, body: InvitationIn) -> HttpResponse:
    return invitation_response(request, enter(request, slug, Scope.ADMIN), body, status=201)


@router.delete(
    "/projects/{slug}/invitations/{invitation_id}", response={204: None}, summary="Revoke an open invitation"
)
def delete_invitation(request: HttpRequest, slug: str, invitation_id: str) -> Status[None]:
    revoke_invitation(access=enter(request, slug, Scope.ADMIN), invitation_id=invitation_id)
    return Status(204, None)


@router.get("/invitations", response=Page[ReceivedInvitationOut], summary="Invitations for your username")
def list_received_invitations(request: HttpRequest, params: Query[ListParams]) -> dict[str, object]:
    principal = principal_of(request)
    principal.require(Scope.READ)
    return params.page(Invitation.objects.waiting_for(principal.user)).response()


@router.post("/invitations/accept", response={201: MemberOut}, summary="Accept an invitation")
def post_accept(request: HttpRequest, body: AcceptIn) -> Status[MemberOut]:
    principal = principal_of(request)
    if Scope.ADMIN not in principal.scopes:
        raise NotAllowed("Accepting an invitation needs the scope `admin`.")
    member = accept_invitation(principal.user, secret=body.secret, invitation_id=body.id)
    return Status(201, MemberOut.model_validate(member))


def invitation_response(request: HttpRequest, access: Access, body: InvitationIn, *, status: int) -> HttpResponse:
    """Create an invitation and show its link, also for the call that adds members."""
    invitation, secret = invite(access=access, **body.model_dump())
    link = request.build_absolute_uri(reverse("invitation", args=[secret]))
    invited = InvitationOut.model_validate(invitation).model_dump()
    return shown_once(NewInvitationOut(**invited, link=link), "link", status=status)
