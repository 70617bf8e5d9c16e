"""Query parameters of lists: one schema per list, derived from `ListParams`, which refuses what it does not know."""

from collections.abc import Collection, Sequence
from typing import ClassVar

from django.http import HttpRequest
from ninja import Schema
from pydantic import Field, ValidationInfo, model_validator

from curation.web.problems import FieldError, Problem


class ListParams(Schema):
    """`limit`, `cursor`, `count` and `sort` of every list. A subclass names its `sorts`, the first is the default."""

    sorts: ClassVar[Sequence[str]] = ("-id",)

    limit: int = Field(50, ge=1, le=500, description="Rows on one page.")
    cursor: str | None = Field(None, description="`next_cursor` of the page before.")
    count: bool = Field(False, description="Adds the exact `total`.")
    sort: str | None = Field(None, description="Field to order by, `-` before it for descending.")

    @model_validator(mode="before")
    @classmethod
    def refuse_unknown(cls, data: object, info: ValidationInfo) -> object:
        request = (info.context or {}).get("request")
        if isinstance(request, HttpRequest):
            unknown = sorted(set(request.GET) - set(cls.model_fields))
            if unknown:
                known = ", ".join(sorted(cls.model_fields))
                raise Problem(
                    f"Unknown parameter {', '.join(unknown)}. This list knows {known}.",
                    code="unknown_parameter",
                    errors=[FieldError(name, "unknown parameter") for name in unknown],
                )
        return data

    def order(self) -> str:
        """The sort order asked for, refused where this list has no index for it."""
        chosen = self.sort or self.sorts[0]
        if chosen not in self.sorts:
            raise Problem(
                f"This list cannot be sorted by {chosen!r}; it knows {', '.join(self.sorts)}.",
                code="unknown_sort",
                errors=[FieldError("sort", "unknown sort order")],
            )
        return chosen


def words(values: Sequence[str]) -> list[list[str]]:
    """`a,b` and `c` given as separate parameters: `[[a, b], [c]]`, an AND of ORs."""
    return [[w.strip() for w in value.split(",") if w.strip()] for value in values if value.strip(" ,")]


def one_of(name: str, values: Sequence[str], allowed: Collection[str]) -> Sequence[str]:
    """The values of parameter `name`, refused where one is not among the allowed words."""
    unknown = [value for value in values if value not in allowed]
    if unknown:
        raise Problem(
            f"{name} cannot be {', '.join(unknown)}; it is one of {', '.join(allowed)}.",
            errors=[FieldError(name, f"one of {', '.join(allowed)}")],
        )
    return values


def holds_nul(given: object) -> bool:
    """Whether a text, or one inside lists and dictionaries, holds U+0000, which PostgreSQL cannot store."""
    if isinstance(given, dict):
        return any(holds_nul(key) or holds_nul(value) for key, value in given.items())
    if isinstance(given, list):
        return any(holds_nul(value) for value in given)
    return isinstance(given, str) and "\x00" in given
