from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Status

from curation.projects.access import Access, enter
from curation.projects.invitations.api import InvitationIn, NewInvitationOut, invitation_response
from curation.projects.invitations.invite import DAYS
from curation.projects.members.change import add_member, change_role, may_see_users, remove_member
from curation.projects.models import Member, Project, Scope
from curation.projects.pages.schemas import MemberIn, MemberOut, RoleIn
from curation.projects.resource import Resource


class Members(Resource[Member]):
    model, noun, plural = Member, "member", "members"
    path, row_path, key = "/members", "/projects/{slug}/members/{username}", "user__username"
    calls = ("list", "get", "patch", "delete")
    patch, out = RoleIn, MemberOut

    def rows(self, access: Access) -> QuerySet[Member]:
        return Member.objects.filter(project=access.project).select_related("user")

    def locked(self, access: Access, row: Member) -> Member:
        """Every change of members takes the project's lock."""
        Project.objects.select_for_update().get(pk=access.project.pk)
        return self.one(access, row.user.username)

    def update(self, access: Access, row: Member, body: RoleIn) -> Member:
        return change_role(access=access, username=row.user.username, role=body.role)

    def delete(self, access: Access, row: Member) -> None:
        remove_member(access=access, username=row.user.username)


router = Members().router()


@router.post(
    "/projects/{slug}/members",
    response={201: MemberOut, 202: NewInvitationOut},
    summary="Add a member: staff at once, others by an invitation for the name",
)
def post_member(request: HttpRequest, slug: str, body: MemberIn) -> HttpResponse | Status[MemberOut]:
    """Staff may see which users exist and add one (201). For every other caller the call creates an invitation that
    the user of that name accepts (202); the answer is the same whether or not there is such a user."""
    access = enter(request, slug, Scope.ADMIN)
    if may_see_users(access.user):
        member = add_member(access=access, username=body.username, role=body.role)
        return Status(201, MemberOut.model_validate(member))
    invitation = InvitationIn(username=body.username, role=body.role, note="", expires_in_days=DAYS)
    return invitation_response(request, access, invitation, status=202)
