"""List pages read the same parameters as the REST lists, and refuse them with the same words."""

from typing import TypeVar

from django.http import HttpRequest
from pydantic import ValidationError

from curation.web.params import ListParams
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
