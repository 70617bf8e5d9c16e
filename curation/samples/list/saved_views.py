"""Saved views: filters of a project's lists with a name, shared by the project."""

from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.http import QueryDict
from django.urls import reverse

from curation.projects import audit
from curation.projects.access import Access, opens
from curation.projects.models import Scope
from curation.samples.models import SavedView
from curation.web.lists.params import NamedList, find_list
from curation.web.problems import Conflict, FieldError, Invalid, NotAllowed, Problem


@dataclass(frozen=True, slots=True)
class ViewLink:
    pk: int
    name: str
    url: str
    delete_url: str
    current: bool


@dataclass(frozen=True, slots=True)
class ViewMenu:
    """The saved views of a list, for its page. `query` is the page's own filter and order."""

    list: str
    list_url: str
    query: str
    may_save: bool
    views: tuple[ViewLink, ...]


def view_menu(access: Access, of: NamedList, given: QueryDict) -> ViewMenu:
    slug = access.project.slug
    url = reverse(of.page, args=[slug])
    try:
        here = canonical(of, given)
    except Problem:  # the page shows the errors of its filter
        here = given.urlencode()
    views = tuple(
        ViewLink(
            view.pk,
            view.name,
            f"{url}?{view.query}",
            reverse("saved-view-delete", args=[slug, view.pk]),
            view.query == here,
        )
        for view in SavedView.objects.filter(project=access.project, list=of.name)[:100]
        if opens(f"{url}?{view.query}", access)
    )
    return ViewMenu(of.name, url, here, access.may(Scope.REVIEW), views)


@transaction.atomic
def save_view(*, access: Access, name: str, query: str, of: str = "samples") -> SavedView:
    """Save the filter and order of a list's URL query under a new name. `of` is the name of the list."""
    access.require(Scope.REVIEW)
    name = " ".join(name.split())
    if not 0 < len(name) <= 80 or not name.isprintable():
        raise Invalid("A view needs a name of 1 to 80 characters.", errors=[FieldError("name", "1 to 80 characters")])
    kept = canonical(find_list(of), QueryDict(query.removeprefix("?")))
    if len(kept) > 2000:
        raise Invalid("This filter is too long to be saved.", errors=[FieldError("query", "at most 2,000 characters")])
    values = {"project": access.project, "list": of, "name": name, "query": kept}
    try:
        with transaction.atomic():
            view = SavedView.objects.create(created_by=access.user, **values)
    except IntegrityError:
        detail = f"There is a view {name!r} already."
        raise Conflict(detail, code="view_exists", errors=[FieldError("name", detail)]) from None
    data = {"list": of, "query": kept}
    audit.record(actor=access.user, action="view.create", subject=name, project=access.project, data=data)
    return view


@transaction.atomic
def delete_view(*, access: Access, view: SavedView) -> None:
    """Delete a view. Allowed for its author and with the right to launch runs."""
    access.require(Scope.REVIEW)
    if view.created_by_id != access.user.pk and not access.may(Scope.RUN):
        raise NotAllowed("Only the author of a view or a curator can delete it.")
    data = {"list": view.list, "query": view.query}
    audit.record(actor=access.user, action="view.delete", subject=view.name, project=access.project, data=data)
    view.delete()


def canonical(of: NamedList, query: QueryDict) -> str:
    """The filter's canonical query, with the order unless it is the default."""
    params = of.params.from_query(query)
    params.order()
    return params.url("").removeprefix("?")
