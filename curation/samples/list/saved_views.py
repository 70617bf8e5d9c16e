"""Saved views: filters of a project's lists with a name, shared by the project."""

from django.db import IntegrityError
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from pydantic import Field

from curation.projects.access import Access, enter
from curation.projects.models import Scope
from curation.projects.resource import Resource
from curation.samples.models import SavedView
from curation.web.lists.filters import find_list
from curation.web.problems import Conflict, FieldError, Invalid, NotAllowed
from curation.web.schemas import Id, Out, StrictModel, answer


class SavedViewIn(StrictModel):
    name: str = Field(examples=["Leaky finals"])
    query: str = Field(description="A URL query of the list.", examples=["bucket=final&flags=leak&sort=-score"])
    list: str = Field("samples", description="The list, such as `duels`, `runs` or `trajectories`.")


class SavedViewOut(SavedViewIn, Out):
    id: Id


class SavedViews(Resource[SavedView]):
    model, noun, plural, words = SavedView, "view", "views", "saved view"
    path, row_path = "/views", "/projects/{slug}/views/{view_id}"
    calls, names = ("post", "delete"), {"post": "create_view", "delete": "remove_view"}
    body, out, changes = SavedViewIn, SavedViewOut, Scope.REVIEW
    logged = ("list", "query")

    def rows(self, access: Access) -> QuerySet[SavedView]:
        return SavedView.objects.filter(project=access.project)

    def write(self, access: Access, row: SavedView, body: SavedViewIn) -> None:
        row.name, row.list = " ".join(body.name.split()), body.list
        if not 0 < len(row.name) <= 80 or not row.name.isprintable():
            wrong = FieldError("name", "1 to 80 characters")
            raise Invalid("A view needs a name of 1 to 80 characters.", errors=[wrong])
        row.query = find_list(body.list).canonical(QueryDict(body.query.removeprefix("?")))
        if len(row.query) > 2000:
            wrong = FieldError("query", "at most 2,000 characters")
            raise Invalid("This filter is too long to be saved.", errors=[wrong])

    def create(self, access: Access, body: SavedViewIn) -> SavedView:
        try:
            return super().create(access, body)
        except IntegrityError:
            detail = f"There is a view {' '.join(body.name.split())!r} already."
            raise Conflict.at("name", detail, code="view_exists") from None

    def delete(self, access: Access, row: SavedView) -> None:
        """Allowed for its author and with the right to launch runs."""
        if row.created_by_id != access.user.pk and not access.may(Scope.RUN):
            raise NotAllowed("Only the author of a view or a curator can delete it.")
        super().delete(access, row)


saved_views = SavedViews()
router = saved_views.router()


@router.get(
    "/projects/{slug}/views",
    response=answer("SavedViewList", data=list[SavedViewOut], next_cursor=(str | None, None)),
    summary="List saved views",
)
def list_views(request: HttpRequest, slug: str, list: str | None = None) -> dict[str, object]:
    rows = saved_views.rows(enter(request, slug, Scope.READ))
    return {"data": [*(rows.filter(list=find_list(list).name) if list else rows)]}
