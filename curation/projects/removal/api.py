from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router, Status

from curation.projects.access import principal_of
from curation.projects.models import AuditEntry, AuditQuerySet, Deletion, DeletionQuerySet, Scope
from curation.projects.pages.audit_file import audit_file
from curation.projects.pages.schemas import AuditExport, AuditList, AuditOut
from curation.projects.removal import schemas as s
from curation.web.http.documented import answers_with_file
from curation.web.ids import find
from curation.web.lists.params import ListParams
from curation.web.problems import NotAllowed
from curation.web.schemas import Page

router = Router(tags=["deletions"])


@router.get("/deletions", response=Page[s.DeletionOut], summary="Deletions, newest first")
def list_deletions(request: HttpRequest, params: Query[ListParams]) -> dict[str, object]:
    """Those that you asked for, and those in projects that you administer."""
    return params.page(_visible(request)).response()


@router.get("/deletions/{deletion_id}", response=s.DeletionOut, summary="The progress of a deletion")
def get_deletion(request: HttpRequest, deletion_id: str) -> s.DeletionOut:
    return s.DeletionOut.model_validate(find(_visible(request), deletion_id, "deletion"))


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
    if Scope.READ not in principal.scopes:
        raise NotAllowed("This needs the scope `read`.")
    return Deletion.objects.visible_to(principal.user).select_related("requested_by")


def accepted(deletion: Deletion, response: HttpResponse) -> Status[s.DeletionOut]:
    response["Location"] = f"/api/v1/deletions/{deletion.pk}"
    return Status(202, s.DeletionOut.model_validate(deletion))
