"""What the tests of review need: people in a project, and who they are to the use-cases."""

from django.contrib.auth.models import User

from curation.projects.access import Access
from curation.projects.models import SCOPES_OF_ROLE, Member, Project, Role
from tests.factories import make_member, make_project


def access_of(user: User, project: Project) -> Access:
    role = Member.objects.get(user=user, project=project).role
    return Access(user, project, role, SCOPES_OF_ROLE[role])


def reviewer_of(project: Project, role: str = Role.REVIEWER) -> Access:
    return access_of(make_member(project, role=role), project)


def project_with_reviewer(**settings: object) -> Access:
    """A new project whose review settings are `settings`, and one reviewer of it."""
    return reviewer_of(make_project(settings_json={"review": settings} if settings else {}))
