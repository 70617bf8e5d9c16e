"""The response of every REST list."""

import re
from functools import cache
from types import new_class
from typing import Any, Generic, TypeVar

from ninja import Schema
from pydantic import Field

T = TypeVar("T")


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
