"""List pages read the same parameters as the REST lists, and refuse them with the same words."""

from typing import TypeVar

from django.http import HttpRequest
from pydantic import ValidationError

from curation.web.lists.params import ListParams
from curation.web.problems import FieldError, Problem

P = TypeVar("P", bound=ListParams)


def read_params(schema: type[P], request: HttpRequest) -> P:
    """The parameters of a list page; a list field takes repeated parameters. Raises `Problem` (400)."""
    values: dict[str, object] = {}
    for name in request.GET:
        given = [value for value in request.GET.getlist(name) if value != ""]
        field = schema.model_fields.get(name)
        if given:
            values[name] = given if field is not None and isinstance(field.default, list) else given[-1]
    try:
        return schema.model_validate(values, context={"request": request})
    except ValidationError as error:
        errors = [FieldError(".".join(map(str, e["loc"])), e["msg"]) for e in error.errors()]
        raise Problem("; ".join(f"{e.path}: {e.message}" for e in errors), code="invalid", errors=errors) from None


def page_urls(request: HttpRequest, next_cursor: str | None) -> dict[str, str | None]:
    """`newer_url` and `older_url` of a list page: back to its beginning, and on from its end."""
    query = request.GET.copy()
    query.pop("cursor", None)
    first = f"{request.path}?{query.urlencode()}" if query else request.path
    query["cursor"] = next_cursor or ""
    older = f"{request.path}?{query.urlencode()}" if next_cursor else None
    return {"newer_url": first if request.GET.get("cursor") else None, "older_url": older}
