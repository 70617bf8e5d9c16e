import re
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from types import new_class
from typing import Annotated, Any, Generic, Self, TypeVar, dataclass_transform

from ninja import Schema
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainSerializer,
    computed_field,
    create_model,
    model_validator,
)
from pydantic.dataclasses import dataclass

from curation.web.text.figures import exact_money

T = TypeVar("T")

# A response reads the attributes of a row, and a row is named by its id, a user by the username.
Id = Annotated[str, BeforeValidator(lambda given: str(getattr(given, "pk", given)))]
Username = Annotated[str, BeforeValidator(str)]
# Whether a column, such as a time, has a value.
Set = Annotated[bool, BeforeValidator(lambda given: given if isinstance(given, bool) else given is not None)]
# The ends of an interval.
Ends = Annotated[list[float], BeforeValidator(lambda given: [given.low, given.high])]
# A time as text, with Z for UTC.
Stamp = Annotated[str, BeforeValidator(lambda at: at.isoformat().replace("+00:00", "Z"))]
# Empty texts of the database are null.
Money = Annotated[str, BeforeValidator(lambda amount: exact_money(amount) if isinstance(amount, Decimal) else amount)]
# An amount that stays a number until it is a response.
Dollars = Annotated[Decimal, PlainSerializer(exact_money, return_type=str)]
NotEmpty = Annotated[str | None, BeforeValidator(lambda given: given or None)]


class StrictModel(BaseModel):
    """A request, parameters or a stored document that refuse unknown keys: a misspelt one must not be ignored. It reads
    the attributes of a row as well."""

    model_config = ConfigDict(extra="forbid", from_attributes=True, protected_namespaces=())


class PlainSchema(BaseModel):
    """A part of a response that is made of dictionaries or of attributes as they are. Ninja's `Schema` looks each field
    up in Python, which is a third of the time of a list's request."""

    model_config = ConfigDict(from_attributes=True, protected_namespaces=())


class Out(Schema):
    """A response that is read from the attributes of a row, beside the schema of its request if there is one:
    `class WebhookOut(WebhookIn, Out)`."""

    model_config = ConfigDict(extra="ignore", json_schema_serialization_defaults_required=True)

    @model_validator(mode="wrap")
    @classmethod
    def made_once(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """A response inside another one has been read already."""
        return given if isinstance(given, cls) else handler(given)


@dataclass_transform(frozen_default=True, field_specifiers=(Field,))
def out(figures: type[T]) -> type[T]:
    """Make a frozen dataclass of figures that are the response as they are; `Field` documents each for OpenAPI."""
    config = ConfigDict(json_schema_serialization_defaults_required=True)
    return dataclass(figures, frozen=True, config=config)  # type: ignore[return-value]


def answer(name: str, **fields: Any) -> type[Schema]:
    """Return the response of one call: a dictionary of these fields, by their types or by type and default."""
    return create_model(name, __base__=Schema, __module__=__name__, **fields)


def optional(schema: type[BaseModel], name: str, **more: tuple[Any, Any]) -> type[StrictModel]:
    """Return the request of a change: the fields of `schema`, each of which may be omitted, and `more`."""
    fields = {
        field: (info.annotation | None, Field(None, description=info.description, examples=info.examples))
        for field, info in schema.model_fields.items()
        if info.annotation
    }
    doc = "Omitted fields keep their values."
    return create_model(name, __base__=StrictModel, __doc__=doc, __module__=schema.__module__, **fields, **more)  # type: ignore[call-overload, no-any-return]


def computed(**documented: Any) -> Callable[[Callable[[Any], T]], Any]:
    """Make a method a field of the response. OpenAPI does not mark it as read-only: no request has it."""

    def unmark(schema: dict[str, Any]) -> None:
        del schema["readOnly"]

    return computed_field(**documented, json_schema_extra=unmark)


@cache
def _named(page: type[Any], row: str) -> type[Any]:
    name = re.sub(r"(Out|Brief|Row)$", "", row) + "Page"
    return new_class(name, (page,), exec_body=lambda body: body.update(__module__=__name__))


class Page(Schema, Generic[T]):
    """`Page[SampleOut]` is `SamplePage` in the OpenAPI document. `total` is there only if the request counts."""

    data: list[T]
    next_cursor: str | None
    total: int | None = Field(None, exclude_if=lambda total: total is None)

    def __class_getitem__(cls, row: Any) -> Any:
        # Pydantic's own name is `Page_SampleOut_`.
        return _named(super().__class_getitem__(row), row.__name__)


# The JSON schema of `curation.web.http.responses.problem_response`.
PROBLEM = {
    "title": "Problem",
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "errors", "request_id"],
    "properties": {
        "type": {"type": "string", "examples": ["urn:winnow:problem:not_found"]},
        "title": {"type": "string", "examples": ["Not found"]},
        "status": {"type": "integer", "examples": [404]},
        "detail": {"type": "string", "description": "The reason and the remedy, for people."},
        "code": {"type": "string", "examples": ["not_found"], "description": "Stable, for programs."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["path", "message"],
                "properties": {"path": {"type": "string"}, "message": {"type": "string"}},
            },
        },
        "request_id": {"type": "string"},
        "current": {"type": "object", "description": "The state that the request did not know of."},
    },
}
