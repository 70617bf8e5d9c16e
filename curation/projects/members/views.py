"""Pages of a project's members and its audit log."""

from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from curation.projects.access import Access, project_page
from curation.projects.members.change import add_member, change_role, remove_member
from curation.projects.models import AuditEntry, Member, Role, Scope
from curation.projects.pages.forms import MemberForm
from curation.projects.settings.pages import settings_context
from curation.web.lists.keyset import paginate
from curation.web.problems import Problem

AUDIT_ROWS = 100


@require_http_methods(["GET", "POST"])
@project_page(Scope.READ)
def member_list(request: HttpRequest, access: Access) -> HttpResponse:
    form = MemberForm(request.POST or None)
    if request.method == "POST":
        access.require(Scope.ADMIN)
        if form.is_valid():
            with form.shows_problem():
                member = add_member(access=access, **form.cleaned_data)
                messages.success(request, f"{member.user.get_username()} is now {member.get_role_display()}.")
                return redirect("member-list", access.project.slug)
    context = settings_context(access, "members", f"/api/v1/projects/{access.project.slug}/members")
    context |= {"form": form, "roles": Role.choices, "rows": Member.objects.listed(access.project)}
    return render(request, "projects/members/list.html", context, status=form.status)


@require_POST
@project_page(Scope.ADMIN)
def member_change(request: HttpRequest, access: Access, username: str) -> HttpResponse:
    return _change(request, access, username, remove=False)


@require_POST
@project_page(Scope.ADMIN)
def member_remove(request: HttpRequest, access: Access, username: str) -> HttpResponse:
    return _change(request, access, username, remove=True)


def _change(request: HttpRequest, access: Access, username: str, *, remove: bool) -> HttpResponse:
    try:
        if remove:
            remove_member(access=access, username=username)
            messages.success(request, f"{username} is no longer a member.")
            if username == access.user.get_username():
                return redirect("home")
        else:
            member = change_role(access=access, username=username, role=request.POST.get("role", ""))
            messages.success(request, f"{username} is now {member.get_role_display()}.")
    except Problem as problem:
        messages.error(request, problem.detail)
    return redirect("member-list", access.project.slug)


@require_GET
@project_page(Scope.ADMIN)
def audit_list(request: HttpRequest, access: Access) -> HttpResponse:
    """The log, newest first; filtered by action and actor."""
    log = AuditEntry.objects.of(access.project)
    action, actor = request.GET.get("action", ""), request.GET.get("actor", "")
    rows = log.matching(actions=[action] if action else [], actors=[actor] if actor else [])
    page = paginate(rows, sort="-id", cursor=request.GET.get("cursor") or None, limit=AUDIT_ROWS)
    chosen = {key: value for key, value in (("action", action), ("actor", actor)) if value}
    here = reverse("audit-list", args=[access.project.slug])
    api = f"/api/v1/projects/{access.project.slug}/audit"
    context = settings_context(access, "audit", f"{api}?{urlencode(chosen)}" if chosen else api)
    context |= {
        "rows": page.rows,
        "actions": log.actions_known(),
        "chosen": chosen,
        "older_url": f"{here}?{urlencode({**chosen, 'cursor': page.next_cursor})}" if page.next_cursor else None,
        "newer_url": f"{here}?{urlencode(chosen)}" if request.GET.get("cursor") else None,
        "clear_url": here,
    }
    return render(request, "projects/members/audit_list.html", context)
