"""A resource of a project, declared once: the REST calls that list, add, read, change and delete its rows.

A subclass names its schemas, its rows and the scopes, and has a method for each change. Pages call the same methods.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import Any, ClassVar, Generic, TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status
from pydantic import BaseModel

from curation.projects.access import Access, enter, principal_of
from curation.projects.models import Project, Scope
from curation.web.http.idempotency import shown_once
from curation.web.http.responses import seen_version, set_etag, version_of
from curation.web.ids import find
from curation.web.lists.filters import ListParams
from curation.web.problems import NotFound, Stale
from curation.web.schemas import Page

M = TypeVar("M", bound=Model)


class Resource(Generic[M]):
    """Which calls there are, and how they are named in the OpenAPI document: operation ids by `noun` and `plural`,
    summaries by `words`, or the noun; `about` are their descriptions.

    `body` is the request of `POST` and `PUT`, `patch` that of `PATCH`. `out` is the response, whose fields are read
    from attributes of the row; `made` that of `POST` where its field `secret` is shown only once.

    `path` begins below the project. In `row_path` a row is named by its id, or by its column `key`. A row whose path
    has no `{slug}` is in any project of the caller.
    """

    model: type[M]
    tag: ClassVar[str] = ""  # That of the router around it.
    noun: ClassVar[str]
    plural: ClassVar[str]
    words: ClassVar[str] = ""
    path: ClassVar[str]
    row_path: ClassVar[str]
    key: ClassVar[str] = "pk"
    calls: ClassVar[Sequence[str]] = ("list", "post", "get", "put", "delete")
    about: ClassVar[Mapping[str, str]] = {}
    names: ClassVar[Mapping[str, str]] = {}
    out: ClassVar[type[BaseModel]]
    body: ClassVar[type[BaseModel]]
    patch: ClassVar[type[BaseModel]]
    made: ClassVar[type[BaseModel] | None] = None
    secret: ClassVar[str] = ""
    params: ClassVar[type[ListParams]] = ListParams
    logged: ClassVar[Sequence[str]] = ()

    reads: ClassVar[str] = Scope.READ
    changes: ClassVar[str] = Scope.ADMIN

    def rows(self, access: Access) -> QuerySet[M]:
        """The rows that the caller may see."""
        raise NotImplementedError

    def write(self, access: Access, row: M, body: Any) -> None:
        """Set the columns of a row, a new one or one that exists. Raises `Invalid` with each wrong field."""
        raise NotImplementedError

    def one(self, access: Access, key: str) -> M:
        """Return the row, or raise `NotFound`."""
        if self.key == "pk":
            return find(self.rows(access), key, self.noun)
        row = self.rows(access).filter(**{self.key: key}).first()
        if row is None:
            raise NotFound(f"There is no {self.words or self.noun} {key[:60]!r} in {access.project.slug}.")
        return row

    def create(self, access: Access, body: Any) -> M:
        access.require(self.changes)
        return self._save(access, self.model(project=access.project, created_by=access.user), body, "create")

    def update(self, access: Access, row: M, body: Any) -> M:
        """Write all of a row that exists."""
        access.require(self.changes)
        return self._save(access, row, body, "update")

    def delete(self, access: Access, row: M) -> None:
        access.require(self.changes)
        with transaction.atomic():
            self.record(access, "delete", row, self._logged(row) if self.logged else {})
            row.delete()

    def record(self, access: Access, change: str, row: M, data: Mapping[str, object] | None = None) -> None:
        """Add the change to the audit log."""
        action, subject = f"{self.noun}.{change}", self.subject(row)
        access.record(action, subject, data)

    def subject(self, row: M) -> str:
        """Return the name of the row in the audit log."""
        return str(row)

    def shown(self, access: Access, rows: Sequence[M]) -> Sequence[BaseModel]:
        """The responses of these rows."""
        return [self.out.model_validate(row) for row in rows]

    def version(self, access: Access, row: M) -> int | str:
        """The row's `ETag`: its column `version`, else a digest of the response."""
        counted: int | None = getattr(row, "version", None)
        return version_of(self.shown(access, [row])[0].model_dump(mode="json")) if counted is None else counted

    def router(self) -> Router:
        router = Router(tags=[self.tag] if self.tag else None)
        rows, row = f"/projects/{{slug}}{self.path}", self.row_path
        words = self.words or self.noun.replace("_", " ")
        a = "an" if words[0] in "aeiou" else "a"
        listed, posted, body = Page.__class_getitem__(self.out), self.made or self.out, getattr(self, "body", None)
        query: Any = Query[self.params]  # type: ignore[misc, name-defined]
        declared: dict[str, tuple[str, str, Any, dict[str, Any], str]] = {
            "list": ("get", rows, listed, {"params": query}, f"List {words}s"),
            "post": ("post", rows, {201: posted}, {"body": body}, f"Add {a} {words}"),
            "get": ("get", row, self.out, {}, f"One {words}"),
            "put": ("put", row, self.out, {"body": body}, f"Write {a} {words} again"),
            "patch": ("patch", row, self.out, {"body": getattr(self, "patch", None)}, f"Change {a} {words}"),
            "delete": ("delete", row, {204: None}, {}, f"Delete {a} {words}"),
        }
        for call in self.calls:
            method, path, response, types, summary = declared[call]
            name = self.names.get(call) or (f"list_{self.plural}" if call == "list" else f"{call}_{self.noun}")
            view = _view(name.replace(" ", "_"), path, getattr(self, f"_{call}"), types)
            add = getattr(router, method)
            add(path, response=response, summary=summary, description=self.about.get(call))(view)
        return router

    def _list(self, request: HttpRequest, response: HttpResponse, slug: str, params: ListParams) -> dict[str, object]:
        access = enter(request, slug, self.reads)
        page = params.page(params.narrow(self.rows(access)))
        return {**page.response(), "data": self.shown(access, page.rows)}

    def _post(self, request: HttpRequest, response: HttpResponse, slug: str, body: Any) -> Any:
        access = enter(request, slug, self.changes)
        row = self.create(access, body)
        if self.made:
            return self.with_secret(access, row)
        if "get" in self.calls:
            key = str(getattr(row, self.key))
            response["Location"] = "/api/v1" + re.sub(r"{[\w:]+}", key, self.row_path.replace("{slug}", slug))
        return Status(201, self._answer(response, access, row))

    def _get(self, request: HttpRequest, response: HttpResponse, key: str, slug: str = "") -> BaseModel:
        return self._answer(response, *self._entered(request, slug, key, self.reads))

    def _put(self, request: HttpRequest, response: HttpResponse, key: str, body: Any, slug: str = "") -> BaseModel:
        with transaction.atomic():
            access, row = self.seen_version(request, slug, key)
            return self._answer(response, access, self.update(access, row, body))

    _patch = _put

    def _delete(self, request: HttpRequest, response: HttpResponse, key: str, slug: str = "") -> Status[None]:
        with transaction.atomic():
            self.delete(*self.seen_version(request, slug, key))
        return Status(204, None)

    def with_secret(self, access: Access, row: M) -> HttpResponse:
        """The only response with the row's secret."""
        response = shown_once((self.made or self.out).model_validate(row), self.secret)
        set_etag(response, self.version(access, row))
        return response

    def locked(self, access: Access, row: M) -> M:
        """Return the row as it is now, locked until the transaction ends, or raise `NotFound`."""
        self.model._default_manager.select_for_update().filter(pk=row.pk).first()
        return find(self.rows(access), str(row.pk), self.noun)

    def save_seen(self, access: Access, row: M, body: Any, version: int) -> M:
        """Update the row as it is now. Raises `Stale` if it is no longer the version that was seen."""
        with transaction.atomic():
            now = self.locked(access, row)
            if self.version(access, now) != version:
                raise Stale.version(version, self.version(access, now))
            return self.update(access, now, body)

    def _save(self, access: Access, row: M, body: Any, change: str) -> M:
        with transaction.atomic():
            self.write(access, row, body)
            row.save()
            self.record(access, change, row, self._logged(body))
        return row

    def _logged(self, values: object) -> dict[str, object]:
        return self.body.model_validate(values).model_dump(mode="json", include=set(self.logged))

    def _answer(self, response: HttpResponse, access: Access, row: M) -> BaseModel:
        set_etag(response, self.version(access, row))
        return self.shown(access, [row])[0]

    def _entered(self, request: HttpRequest, slug: str, key: str, scope: str) -> tuple[Access, M]:
        if slug:
            access = enter(request, slug, scope)
        else:
            visible = Project.objects.visible_to(principal_of(request).user)
            mine = self.model._default_manager.filter(project__in=visible).select_related("project")
            access = enter(request, find(mine, key, self.noun).project, scope)  # type: ignore[attr-defined]
        return access, self.one(access, key)

    def seen_version(self, request: HttpRequest, slug: str, key: str) -> tuple[Access, M]:
        """Lock the row, and compare its version with `If-Match`."""
        access, row = self._entered(request, slug, key, self.changes)
        row = self.locked(access, row)
        seen_version(request, self.version(access, row), now=self.shown(access, [row])[0].model_dump(mode="json"))
        return access, row


def _view(name: str, path: str, call: Callable[..., Any], types: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a view as django-ninja reads it: by its name and the types of its parameters."""
    keys = re.findall(r"{(?:\w+:)?(\w+)}", path)

    def view(request: HttpRequest, response: HttpResponse, **given: Any) -> Any:
        return call(request, response, **{"key" if key in keys and key != "slug" else key: given[key] for key in given})

    parameters = {"request": HttpRequest, "response": HttpResponse, **dict.fromkeys(keys, str), **types}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    shown = inspect.Signature([inspect.Parameter(key, kind, annotation=type_) for key, type_ in parameters.items()])
    update_wrapper(view, call)
    view.__name__, view.__signature__ = name, shown  # type: ignore[attr-defined]
    return view
