"""Ids are opaque strings outside and numbers inside; a string that is not a number is not found.

An `IdList` passes many ids to a query as one parameter. Django prepares each value of a list by itself, which costs
more than the database takes to find the rows.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BigIntegerField, Field, Func, Model, QuerySet, TextField
from django.db.models.sql.compiler import SQLCompiler

from curation.web.database.queries import list_parameter
from curation.web.problems import FieldError, Invalid, NotFound

M = TypeVar("M", bound=Model)


def number(text: str | None, *, digits: int = 9) -> int | None:
    """A whole number of at most that many ASCII digits; None for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= digits else None


def id_number(text: str) -> int | None:
    """The id as the database has it, or None for a text that cannot be an id."""
    return number(text, digits=18)


def find(rows: QuerySet[M], given: str, noun: str) -> M:
    """The row with this id, or `NotFound`; `rows` are already limited to those that the caller may see."""
    pk = id_number(given)
    row = None if pk is None else rows.filter(pk=pk).first()
    if row is None:
        raise NotFound(f"There is no {noun} {given!r}, or it is not yours to see.")
    return row


def lock_row(row: M, noun: str) -> M:
    """The row as it is now, locked until the transaction ends, or `NotFound` if somebody has deleted it meanwhile."""
    return find(type(row)._default_manager.select_for_update(), str(row.pk), noun)


def find_param(rows: QuerySet[M], given: str, noun: str, path: str) -> M:
    """As `find`, for an id inside a request: raises `Invalid` at `path`."""
    try:
        return find(rows, given, noun)
    except NotFound as missing:
        raise Invalid(missing.detail, errors=[FieldError(path, f"unknown {noun}")]) from None


def known_ids(rows: QuerySet[Any, Any], ids: Sequence[str], noun: str, *, where: str) -> list[int]:
    """The ids as numbers, or `NotFound` with those that are not among the rows."""
    found = set(rows.filter(pk__in=ids).values_list("pk", flat=True))
    missing = [given for given in ids if int(given) not in found]
    if missing:
        raise NotFound(f"There is no {noun} {', '.join(missing)} in {where}.")
    return list(found)


class IdList(Func):
    """`rows.filter(sample_id__in=IdList(ids))`; any number of ids."""

    of: ClassVar["tuple[type[Field[Any, Any]], str]"] = (BigIntegerField, "bigint")

    def __init__(self, values: Sequence[int] | Sequence[str]) -> None:
        super().__init__(output_field=self.of[0]())
        self.values = values

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: object) -> tuple[str, tuple[Any]]:
        return "(SELECT value FROM json_each(%s))", (list_parameter(connection, self.values),)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: object
    ) -> tuple[str, list[Any]]:
        return f"(SELECT unnest(%s::{self.of[1]}[]))", [list_parameter(connection, self.values)]


class KeyList(IdList):
    """The same for text, such as hashes."""

    of = (TextField, "text")
