"""Saved views: filters of the samples list with a name, shared by the project."""

from django.db import IntegrityError, transaction
from django.http import QueryDict

from curation.projects import audit
from curation.projects.access import Access
from curation.projects.models import Scope
from curation.samples.list.pages import SamplePageParams
from curation.samples.models import SavedView
from curation.web.problems import Conflict, FieldError, Invalid, NotAllowed


@transaction.atomic
def save_view(*, access: Access, name: str, query: str) -> SavedView:
    """Save the filter and order of a URL query under a new name."""
    access.require(Scope.REVIEW)
    name = " ".join(name.split())
    if not 0 < len(name) <= 80 or not name.isprintable():
        raise Invalid("A view needs a name of 1 to 80 characters.", errors=[FieldError("name", "1 to 80 characters")])
    kept = canonical(query)
    if len(kept) > 2000:
        raise Invalid("This filter is too long to be saved.", errors=[FieldError("query", "at most 2,000 characters")])
    try:
        with transaction.atomic():
            view = SavedView.objects.create(project=access.project, name=name, query=kept, created_by=access.user)
    except IntegrityError:
        raise Conflict(f"There is a view {name!r} already.", code="view_exists") from None
    audit.record(actor=access.user, action="view.create", subject=name, project=access.project, data={"query": kept})
    return view


@transaction.atomic
def delete_view(*, access: Access, view: SavedView) -> None:
    """Delete a view. Its author may, and everyone who may launch runs."""
    access.require(Scope.REVIEW)
    if view.created_by_id != access.user.pk and not access.may(Scope.RUN):
        raise NotAllowed("Only the author of a view or a curator can delete it.")
    audit.record(
        actor=access.user, action="view.delete", subject=view.name, project=access.project, data={"query": view.query}
    )
    view.delete()


def canonical(query: str) -> str:
    """The filter's canonical query, with the order unless it is the default."""
    params = SamplePageParams.from_query(QueryDict(query.removeprefix("?")))
    params.order()
    return params.url("").removeprefix("?")
