"""Ids are opaque strings outside and numbers inside; whatever is not a number is simply not found."""

from collections.abc import Callable
from typing import TypeVar

from django.db.models import Model, QuerySet

from curation.web.problems import FieldError, Invalid, NotFound

M = TypeVar("M", bound=Model)


def find(rows: QuerySet[M], given: str, noun: str) -> M:
    """The row with this id among `rows`, or `NotFound`; `rows` already holds only what the caller may see."""
    return find_by(lambda number: rows.filter(pk=number).first(), given, noun)


def find_param(rows: QuerySet[M], given: str, noun: str, path: str) -> M:
    """As `find`, for an id inside a request: raises `Invalid` at `path`."""
    try:
        return find(rows, given, noun)
    except NotFound as missing:
        raise Invalid(missing.detail, errors=[FieldError(path, f"unknown {noun}")]) from None


def find_by(read: Callable[[int], M | None], given: str, noun: str) -> M:
    """As `find`, where the row is read in another way."""
    if given.isascii() and given.isdigit() and len(given) < 19:
        row = read(int(given))
        if row is not None:
            return row
    raise NotFound(f"There is no {noun} {given!r}, or it is not yours to see.")
