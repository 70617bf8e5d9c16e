from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET
from pydantic import Field

from curation.projects.access import Access, principal_of, project_page
from curation.projects.models import AuditEntry, Deletion, Scope
from curation.projects.pages.schemas import AuditList
from curation.projects.removal.change import archive_project, delete_project
from curation.web.ids import find
from curation.web.lists.filters import url_query
from curation.web.lists.pages import list_context
from curation.web.problems import NotAllowed, Problem


class ServerAuditParams(AuditList):
    limit: int = Field(100, ge=1, le=500)


@project_page(Scope.ADMIN, "POST", while_archived=True)
def project_archive(request: HttpRequest, access: Access) -> HttpResponse:
    try:
        project = archive_project(access=access, archived=access.project.archived_at is None)
        done = "archived: it can be read, but not changed" if project.archived_at else "unarchived"
        messages.success(request, f"The project is {done}.")
    except Problem as problem:
        messages.error(request, problem.detail)
    return redirect("settings", access.project.slug)


@project_page(Scope.ADMIN, "POST", while_archived=True)
def project_delete(request: HttpRequest, access: Access) -> HttpResponse:
    try:
        deletion = delete_project(access=access, name=request.POST.get("name", ""))
    except Problem as problem:
        messages.error(request, problem.detail)
        return redirect("settings", access.project.slug)
    return redirect("deletion-page", deletion.pk)


@require_GET
@login_required
def deletion_page(request: HttpRequest, pk: str) -> HttpResponse:
    """The progress, which the page reads again until the end."""
    visible = Deletion.objects.visible_to(principal_of(request).user).select_related("requested_by")
    row = find(visible, pk, "deletion")
    return render(request, "projects/removal/page.html", {"row": row, "api_path": f"/api/v1/deletions/{row.pk}"})


@require_GET
@login_required
def server_audit(request: HttpRequest) -> HttpResponse:
    """Entries without a project: tokens, and the deletion of projects. For superusers."""
    if not principal_of(request).user.is_superuser:
        raise NotAllowed("The server's audit log is for superusers.")
    log = AuditEntry.objects.filter(project=None).select_related("actor")
    params = ServerAuditParams.from_query(request.GET)
    context = list_context(request, params, params.read(log), "/api/v1/audit")
    context |= {"actions": log.actions_known(), "chosen": dict(params.pairs())}
    context["export_url"] = f"/api/v1/audit/export?{url_query(params.pairs())}"
    return render(request, "projects/removal/server_audit.html", context)
