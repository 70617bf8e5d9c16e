from datetime import datetime

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET
from ninja import Query, Router, Status
from pydantic import Field

from curation.projects.access import Access, principal_of, project_page
from curation.projects.models import AuditEntry, AuditQuerySet, Deletion, DeletionQuerySet, Scope
from curation.projects.pages.audit_file import audit_file
from curation.projects.pages.schemas import STAMP, AuditExport, AuditList, AuditOut, AuditPageParams
from curation.projects.removal.change import archive_project, delete_project
from curation.web.forms import tells_refusal
from curation.web.http.responses import answers_with_file
from curation.web.ids import find
from curation.web.lists.filters import ListParams, url_query
from curation.web.lists.pages import list_context
from curation.web.problems import NotAllowed
from curation.web.schemas import Id, Out, Page, StrictModel, Username


class ArchiveIn(StrictModel):
    archived: bool = Field(examples=[True], description="True hides it from lists; false shows it again.")


class DeletionOut(Out):
    id: Id = Field(examples=["4"])
    noun: str = Field(examples=["project"])
    target: Id = Field(validation_alias="target_id", examples=["17"], description="The id of the deleted object.")
    label: str = Field(examples=["project Shell agents"])
    state: str = Field(examples=["deleting"], description="deleting or deleted")
    rows: int = Field(examples=[120345], description="Rows that are deleted so far.")
    error: str = Field(description="Why the last try stopped; it is tried again.")
    requested_by: Username | None = Field(examples=["ada"])
    created_at: datetime = Field(examples=[STAMP])
    finished_at: datetime | None = Field(examples=[STAMP])

    @staticmethod
    def resolve_state(row: Deletion) -> str:
        return "deleting" if row.finished_at is None else "deleted"


router = Router(tags=["deletions"])


@router.get("/deletions", response=Page[DeletionOut], summary="Deletions, newest first")
def list_deletions(request: HttpRequest, params: Query[ListParams]) -> dict[str, object]:
    """Those that you asked for, and those in projects that you administer."""
    return params.page(_visible(request)).response()


@router.get("/deletions/{deletion_id}", response=DeletionOut, summary="The progress of a deletion")
def get_deletion(request: HttpRequest, deletion_id: str) -> DeletionOut:
    return DeletionOut.model_validate(find(_visible(request), deletion_id, "deletion"))


@router.get("/audit", response=Page[AuditOut], summary="The server's audit log, newest first")
def list_server_audit(request: HttpRequest, params: Query[AuditList]) -> dict[str, object]:
    """Entries without a project: tokens, and the deletion of projects. For superusers."""
    return params.read(_server_log(request)).response()


@router.get(
    "/audit/export",
    openapi_extra=answers_with_file("application/jsonl", "text/csv", has_etag=False),
    summary="The server's whole audit log as a file, oldest first",
)
def export_server_audit(request: HttpRequest, params: Query[AuditExport]) -> StreamingHttpResponse:
    """The entries that match, as JSON Lines or CSV, sent while they are read. For superusers."""
    return audit_file(params.narrow(_server_log(request)), params.format, name="server")


def _server_log(request: HttpRequest) -> AuditQuerySet:
    principal = principal_of(request)
    if not principal.user.is_superuser or Scope.ADMIN not in principal.scopes:
        raise NotAllowed("The server's audit log is for superusers, with the scope `admin`.")
    return AuditEntry.objects.filter(project=None).select_related("actor")


def _visible(request: HttpRequest) -> DeletionQuerySet:
    principal = principal_of(request)
    principal.require(Scope.READ)
    return Deletion.objects.visible_to(principal.user).select_related("requested_by")


def accepted(deletion: Deletion, response: HttpResponse) -> Status[DeletionOut]:
    response["Location"] = f"/api/v1/deletions/{deletion.pk}"
    return Status(202, DeletionOut.model_validate(deletion))


@project_page(Scope.ADMIN, "POST", while_archived=True)
def project_archive(request: HttpRequest, access: Access) -> HttpResponse:
    with tells_refusal(request):
        project = archive_project(access=access, archived=access.project.archived_at is None)
        done = "archived: it can be read, but not changed" if project.archived_at else "unarchived"
        messages.success(request, f"The project is {done}.")
    return redirect("settings", access.project.slug)


@project_page(Scope.ADMIN, "POST", while_archived=True)
def project_delete(request: HttpRequest, access: Access) -> HttpResponse:
    with tells_refusal(request):
        return redirect("deletion-page", delete_project(access=access, name=request.POST.get("name", "")).pk)
    return redirect("settings", access.project.slug)


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
    params = AuditPageParams.from_query(request.GET)
    context = list_context(request, params, params.read(log), "/api/v1/audit")
    context |= {"actions": log.actions_known(), "chosen": dict(params.pairs())}
    context["export_url"] = f"/api/v1/audit/export?{url_query(params.pairs())}"
    return render(request, "projects/removal/server_audit.html", context)
