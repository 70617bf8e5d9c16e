"""Views of the samples list that a project keeps by name."""

from django.db import IntegrityError, transaction
from django.http import QueryDict

from curation.projects import audit
from curation.projects.access import Access
from curation.projects.models import Scope
from curation.samples.list.filters import SampleFilter
from curation.samples.list.queries import SORTS
from curation.samples.models import SavedView
from curation.web.problems import Conflict, FieldError, Invalid, NotAllowed


@transaction.atomic
def save_view(*, access: Access, name: str, query: str) -> SavedView:
    """Keeps the filter and order of a URL query under a name that is new in the project. The query is checked first."""
    access.require(Scope.REVIEW)
    name = " ".join(name.split())
    if not 0 < len(name) <= 80 or not name.isprintable():
        raise Invalid("A view needs a name of 1 to 80 characters.", errors=[FieldError("name", "1 to 80 characters")])
    kept = canonical(query)
    if len(kept) > 2000:
        raise Invalid("This filter is too long to be kept.", errors=[FieldError("query", "at most 2,000 characters")])
    try:
        with transaction.atomic():
            view = SavedView.objects.create(project=access.project, name=name, query=kept, created_by=access.user)
    except IntegrityError:
        raise Conflict(f"There is a view {name!r} already.", code="view_exists") from None
    audit.record(actor=access.user, action="view.create", subject=name, project=access.project, data={"query": kept})
    return view


@transaction.atomic
def delete_view(*, access: Access, view: SavedView) -> None:
    """Its maker may, and who may launch runs."""
    access.require(Scope.REVIEW)
    if view.created_by_id != access.user.pk and not access.may(Scope.RUN):
        raise NotAllowed("Only who made a view, or a curator, can delete it.")
    audit.record(
        actor=access.user, action="view.delete", subject=view.name, project=access.project, data={"query": view.query}
    )
    view.delete()


def canonical(query: str) -> str:
    """The filter's canonical query, with the order where it is not the default."""
    given = QueryDict(query.removeprefix("?"))
    sort = given.get("sort") or next(iter(SORTS))
    wanted = SampleFilter.from_query(given, besides={"sort", "cursor", "before"}).to_query()
    if sort not in SORTS:
        raise Invalid(f"The list has no order {sort!r}.", errors=[FieldError("sort", "unknown sort order")])
    return "&".join(part for part in (wanted, "" if sort == next(iter(SORTS)) else f"sort={sort}") if part)
