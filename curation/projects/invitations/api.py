from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router, Status

from curation.projects.access import Access, enter, principal_of
from curation.projects.invitations import schemas as s
from curation.projects.invitations.accept import accept_invitation
from curation.projects.invitations.invite import invite, revoke_invitation
from curation.projects.models import Invitation, Scope
from curation.projects.pages.schemas import MemberOut
from curation.web.http.idempotency import shown_once
from curation.web.lists.params import ListParams
from curation.web.problems import NotAllowed
from curation.web.schemas import Page

router = Router(tags=["members"])


@router.get("/projects/{slug}/invitations", response=Page[s.InvitationOut], summary="Invitations")
def list_invitations(request: HttpRequest, slug: str, params: Query[ListParams]) -> dict[str, object]:
    rows = Invitation.objects.filter(project=enter(request, slug, Scope.ADMIN).project)
    return params.page(rows.select_related("invited_by", "accepted_by")).response()


@router.post(
    "/projects/{slug}/invitations",
    response={201: s.NewInvitationOut},
    summary="Invite a person; the link is shown only once",
)
def post_invitation(request: HttpRequest, slug: str, body: s.InvitationIn) -> HttpResponse:
    return invitation_response(request, enter(request, slug, Scope.ADMIN), body, status=201)


@router.delete(
    "/projects/{slug}/invitations/{invitation_id}", response={204: None}, summary="Revoke an open invitation"
)
def delete_invitation(request: HttpRequest, slug: str, invitation_id: str) -> Status[None]:
    revoke_invitation(access=enter(request, slug, Scope.ADMIN), invitation_id=invitation_id)
    return Status(204, None)


@router.get("/invitations", response=Page[s.ReceivedInvitationOut], summary="Invitations for your username")
def list_received_invitations(request: HttpRequest, params: Query[ListParams]) -> dict[str, object]:
    principal = principal_of(request)
    if Scope.READ not in principal.scopes:
        raise NotAllowed("This needs the scope `read`.")
    return params.page(Invitation.objects.waiting_for(principal.user)).response()


@router.post("/invitations/accept", response={201: MemberOut}, summary="Accept an invitation")
def post_accept(request: HttpRequest, body: s.AcceptIn) -> Status[MemberOut]:
    principal = principal_of(request)
    if Scope.ADMIN not in principal.scopes:
        raise NotAllowed("Accepting an invitation needs the scope `admin`.")
    member = accept_invitation(principal.user, secret=body.secret, invitation_id=body.id)
    return Status(201, MemberOut.model_validate(member))


def invitation_response(request: HttpRequest, access: Access, body: s.InvitationIn, *, status: int) -> HttpResponse:
    """Create an invitation and show its link, also for the call that adds members."""
    made = invite(access=access, **body.model_dump())
    link = request.build_absolute_uri(reverse("invitation", args=[made.secret]))
    invited = s.InvitationOut.model_validate(made.row).model_dump()
    return shown_once(s.NewInvitationOut(**invited, link=link), "link", status=status)
