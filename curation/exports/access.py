"""Exports that a caller names, by REST and on pages."""

from django.http import HttpRequest

from curation.exports.models import Export
from curation.projects.access import Access, enter, principal_of
from curation.projects.models import Scope
from curation.samples.blind import refuse_pending
from curation.web.ids import find


def entered(request: HttpRequest, export_id: str, scope: str = Scope.READ) -> tuple[Access, Export]:
    export = find(Export.objects.visible_to(principal_of(request).user), export_id, "export")
    return enter(request, export.project, scope), export


def opened(request: HttpRequest, export_id: str) -> tuple[Access, Export]:
    """Return an export whose figures about single samples the caller may read."""
    access, export = entered(request, export_id)
    refuse_pending(access, export.samples(), f"export {export.pk}")
    return access, export


def opened_page(access: Access, export_id: str) -> Export:
    """The same for a page of the project."""
    export = find(Export.objects.of(access.project), export_id, "export")
    refuse_pending(access, export.samples(), f"export {export.pk}")
    return export
