"""Keyset pages: a list is read by index from where the last page ended, never by OFFSET."""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import orjson
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from curation.web.problems import Problem
from curation.web.text.storable import read_json

# A row: an instance of a model, or a named tuple with `pk` and the column of the order.
M = TypeVar("M")
R = TypeVar("R", bound="QuerySet[Any]")
Key = str | int | float


@dataclass(frozen=True, slots=True)
class KeysetPage(Generic[M]):
    """Rows of one page, the cursor of the next (None at the end) and, if it was counted, the exact total."""

    rows: list[M]
    next_cursor: str | None
    total: int | None = None

    def response(self, shape: Callable[[M], object] | None = None) -> dict[str, object]:
        """The response of a REST list. Without `shape`, its schema reads the attributes of the rows."""
        rows = [shape(row) for row in self.rows] if shape else self.rows
        return {"data": rows, "next_cursor": self.next_cursor, "total": self.total}


def encode_cursor(sort: str, value: Key, pk: int) -> str:
    return base64.urlsafe_b64encode(orjson.dumps([sort, value, pk])).decode().rstrip("=")


def decode_cursor(cursor: str, sort: str) -> tuple[Key, int]:
    """The sort value and id after which the next page starts; a cursor of another sort order is refused."""
    try:
        kept, value, pk = read_json(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (Problem, binascii.Error, ValueError, TypeError):
        raise Problem("This cursor is not one of this list. Start again without a cursor.", code="bad_cursor") from None
    if kept != sort or not isinstance(pk, int) or not isinstance(value, str | int | float):
        raise Problem(
            f"This cursor was made for another sort order than {sort!r}. Start again without a cursor.",
            code="bad_cursor",
        )
    return value, pk


def paginate(
    rows: QuerySet[Any, M], *, sort: str, cursor: str | None, limit: int, count: bool = False
) -> KeysetPage[M]:
    """One page of `rows` ordered by `sort` (a field that is never null, `-` before it for descending), then by id.

    The sort field needs an index that ends in the id; `field <= value AND (field < value OR id < last)` is the form
    that both SQLite and PostgreSQL turn into one range of that index.
    """
    total = rows.count() if count else None
    return page_of(list(in_order(after(rows, sort, cursor), sort)[: limit + 1]), sort=sort, limit=limit, total=total)


def after(rows: R, sort: str, cursor: str | None) -> R:
    """The rows after a cursor. Raises `Problem` for one that is not of this order."""
    if not cursor:
        return rows
    field, way = sort.removeprefix("-"), "lt" if sort.startswith("-") else "gt"
    value, pk = decode_cursor(cursor, sort)
    try:
        if field == "id":
            return rows.filter(**{f"id__{way}": pk})
        return rows.filter(Q(**{f"{field}__{way}e": value}), Q(**{f"{field}__{way}": value}) | Q(**{f"id__{way}": pk}))
    except (ValidationError, ValueError, TypeError):  # a value of another type than the column's
        raise Problem("This cursor is not one of this list. Start again without a cursor.", code="bad_cursor") from None


def in_order(rows: R, sort: str) -> R:
    """Order rows as pages are: by `sort`, then by id."""
    field, mark = sort.removeprefix("-"), "-" if sort.startswith("-") else ""
    return rows.order_by(*[f"{mark}id"] if field == "id" else [f"{mark}{field}", f"{mark}id"])


def page_of(found: list[M], *, sort: str, limit: int, total: int | None = None) -> KeysetPage[M]:
    """One page of rows that were read in order, with one more than `limit` where the list goes on."""
    if len(found) <= limit:
        return KeysetPage(found, None, total)
    field, last = sort.removeprefix("-"), cast(Any, found[limit - 1])
    value = last.pk if field == "id" else getattr(last, field)
    if hasattr(value, "isoformat"):
        value = value.isoformat()
    return KeysetPage(found[:limit], encode_cursor(sort, value, last.pk), total)
