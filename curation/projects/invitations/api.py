from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router, Schema, Status
from pydantic import Field

from curation.projects.access import Access, enter, principal_of
from curation.projects.invitations.invite import DAYS, MAX_DAYS, accept_invitation, invite, revoke_invitation
from curation.projects.models import Invitation, Role, Scope
from curation.projects.pages.schemas import STAMP, MemberOut
from curation.web.http.idempotency import shown_once
from curation.web.lists.filters import ListParams
from curation.web.problems import NotAllowed
from curation.web.schemas import Id, Out, Page, Strict, Username


class InvitationIn(Strict):
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


class AcceptIn(Strict):
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
