"""Rights in a project. Every page and API call of a project passes `enter`; non-members get 404."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec

from django import template
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import get_script_prefix, resolve
from django.views.decorators.http import require_http_methods

from curation.projects.models import SCOPES_OF_ROLE, AuditEntry, Member, Project, Role, Scope, Token
from curation.web.database.queries import Prepared
from curation.web.problems import NotAllowed, NotAuthenticated, NotFound, Problem

P = ParamSpec("P")
register = template.Library()
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Principal:
    """The user who sends a request and the scopes of their credential: all for a session, its own for a token."""

    user: User
    scopes: frozenset[str]
    token: Token | None = None

    def require(self, scope: str) -> None:
        if scope not in self.scopes:
            raise NotAllowed(f"This needs the scope `{scope}`.")


@dataclass(frozen=True, slots=True)
class Access:
    """A principal inside one project."""

    user: User
    project: Project
    role: str
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        return scope in self.scopes

    def require(self, scope: str) -> None:
        if scope not in self.scopes:
            raise NotAllowed(f"This needs the scope `{scope}`. Your role in {self.project.slug} is {self.role}.")

    def record(self, action: str, subject: str, data: Mapping[str, object] | None = None) -> None:
        """Add a change of theirs to the audit log, in its transaction."""
        AuditEntry.record(actor=self.user, project=self.project, action=action, subject=subject, data=data)


# Whether a page does not open to this person.
Closed = Callable[[Access], bool]
# Raises `NotAllowed` where a page does not open with this query for this person.
Refusal = Callable[[Access, QueryDict], None]


def principal_of(request: HttpRequest) -> Principal:
    """Return `request.auth` of an API call, else the session's user."""
    found = getattr(request, "auth", None)
    if isinstance(found, Principal):
        return found
    if isinstance(request.user, User):
        return Principal(request.user, frozenset(Scope))
    raise NotAuthenticated("Sign in first.")


def enter(request: HttpRequest, project: str | Project, scope: str, *, while_archived: bool = False) -> Access:
    """Return the caller's access to a project (slug or row): `NotFound` for non-members, `NotAllowed` without scope.

    `Gone` while the project is being deleted. An archived project refuses every method that is not a read with
    `Conflict`, unless `while_archived`.
    """
    principal = principal_of(request)
    if isinstance(project, str):
        slug, (found, role) = project, _by_slug(principal.user, project)
    else:
        slug, (found, role) = project.slug, (project, _role(principal.user, project))
    if found is None or role is None:
        raise NotFound(f"There is no project {slug!r}, or you are not a member of it.")
    access = Access(principal.user, found, role, SCOPES_OF_ROLE[role] & principal.scopes)
    if found.deleting_at is not None:
        found.require_writable()
    request.META["winnow.access"] = access  # for the page shell, which shows the project and its queue count
    access.require(scope)
    if request.method not in SAFE and not while_archived:
        found.require_writable()
    return access


def access_of(user: User, project: Project) -> Access | None:
    """Return a person's access to a project now, without a request; None for non-members and closed accounts."""
    role = _role(user, project) if user.is_active else None
    return None if role is None else Access(user, project, role, SCOPES_OF_ROLE[role])


def may_create_projects(user: User, groups: Iterable[str] | None = None) -> bool:
    """Whether `PROJECT_CREATORS` includes the user; a superuser always may. `groups` are the names of the user's, where
    the caller has read them."""
    allowed = settings.PROJECT_CREATORS
    if user.is_superuser or "everyone" in allowed or (user.is_staff and "staff" in allowed):
        return True
    names = {entry.removeprefix("group:") for entry in allowed if entry.startswith("group:")}
    if groups is None:
        return user.groups.filter(name__in=names).exists()
    return not names.isdisjoint(groups)


def _by_slug(user: User, slug: str) -> tuple[Project | None, str | None]:
    if user.is_superuser:
        return Project.objects.filter(slug=slug).first(), Role.ADMIN
    member = _member_by_slug.first(slug=slug, user=user.pk)
    return (member.project, member.role) if member else (None, None)


def _role(user: User, project: Project) -> str | None:
    if user.is_superuser:
        return Role.ADMIN
    member = _member.first(project=project.pk, user=user.pk)
    return member.role if member else None


# Nearly every page and call makes one of these queries, so their SQL is compiled once. No row is cached: a removed
# member loses access at once.
_member_by_slug = Prepared(
    lambda slug, user: Member.objects.select_related("project").filter(project__slug=slug, user=user),
    slug=str,
    user=int,
)
_member = Prepared(lambda project, user: Member.objects.filter(project=project, user=user), project=int, user=int)


def project_page(
    scope: str,
    *methods: str,
    while_archived: bool = False,
    closed_to: Closed | None = None,
    refuses_query: Refusal | None = None,
) -> Callable[[Callable[Concatenate[HttpRequest, Access, P], HttpResponse]], Callable[..., HttpResponse]]:
    """Require sign-in, membership and `scope` for a view of `/p/<slug>/…`, which gets `Access` as second argument, and
    one of the `methods`; without any, every method is allowed.

    `closed_to` is the rule by which the view refuses some people, `refuses_query` the one by which it refuses a query:
    links that they refuse are not offered.
    """

    def decorate(view: Callable[Concatenate[HttpRequest, Access, P], HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(view)
        @login_required
        def page(request: HttpRequest, slug: str, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            access = enter(request, slug, scope, while_archived=while_archived)
            return view(request, access, *args, **kwargs)

        limited = require_http_methods(methods)(page) if methods else page
        rules = {"scope": scope, "closed_to": closed_to, "refuses_query": refuses_query}
        limited.__dict__ |= rules  # decorators around it keep them
        return limited

    return decorate


@register.filter
def opens(url: str, access: Access | None) -> bool:
    """Return whether the person may open this page of the project. Also a template filter that every template has;
    without `access` the page belongs to no project."""
    return not access or bool(open_to(access, [("", url)]))


def open_to(access: Access, links: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the words and addresses of those pages that the person may open. Each rule is asked once."""
    passed: dict[tuple[str, Closed | None, Refusal | None, str], bool] = {}
    found = []
    for words, url in links:
        path, _, query = url.partition("?")
        rule = (*_rules_of(path), query)
        if rule not in passed:
            passed[rule] = _opens(access, *rule)
        if passed[rule]:
            found.append((words, url))
    return found


@lru_cache(maxsize=4096)
def _rules_of(path: str) -> tuple[str, Closed | None, Refusal | None]:
    """The scope and the rules of a page. It has some fifty links, and finding their views takes a tenth of its time."""
    view = resolve("/" + path.removeprefix(get_script_prefix())).func
    return getattr(view, "scope", Scope.READ), getattr(view, "closed_to", None), getattr(view, "refuses_query", None)


def _opens(access: Access, scope: str, closed_to: Closed | None, refuses_query: Refusal | None, query: str) -> bool:
    if scope not in access.scopes or (closed_to is not None and closed_to(access)):
        return False
    try:
        if query and refuses_query is not None:
            refuses_query(access, QueryDict(query))
    except Problem as problem:
        return not isinstance(problem, NotAllowed)  # the page shows other errors of the query
    return True
