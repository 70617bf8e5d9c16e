"""Lists of the API, read page by page, and the filters of their addresses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import urlencode

from winnow_client.calls import Async, Caller, M, Sync, call, run
from winnow_client.errors import MissingPackage
from winnow_client.transport import Json, Params, Transport

if TYPE_CHECKING:
    import pandas

R = TypeVar("R")
Words = Sequence[str] | Sequence[int] | Set[str] | Set[int]
Value = str | int | float | bool | datetime | Words | Sequence[Words] | None
PAGE = 500


class Rows(Caller[M], Generic[R, M]):
    """The rows of a list, in its order. Each iteration reads them again, in pages of 500."""

    def __init__(
        self, transport: Transport, path: str, filters: Mapping[str, Value], make: Callable[[Json], R]
    ) -> None:
        self._transport = transport
        self._path = path
        self._filters = query(filters)
        self._make = make

    def __repr__(self) -> str:
        return f"<Rows {self._path}{'?' if self._filters else ''}{urlencode(self._filters, safe=',')}>"

    def __iter__(self: Rows[R, Sync]) -> Iterator[R]:
        if self._transport.is_async:  # to begin a request and leave it would block the client's later ones
            raise TypeError("The rows of AsyncWinnow are read with `async for`.")
        cursor: str | None = ""
        while cursor is not None:
            rows, cursor = run(self._page, cursor)
            yield from map(self._make, rows)

    async def __aiter__(self: Rows[R, Async]) -> AsyncIterator[R]:
        cursor: str | None = ""
        while cursor is not None:
            rows, cursor = await self._page(cursor)
            for row in rows:
                yield self._make(row)

    @call
    async def first(self) -> R | None:
        """Return the first row; None if there is none."""
        found = await self._read(("limit", "1"))
        return self._make(found["data"][0]) if found["data"] else None

    @call
    async def count(self) -> int:
        """Count the rows, exactly."""
        return int((await self._read(("limit", "1"), ("count", "true")))["total"])

    @call
    async def to_dataframe(self) -> pandas.DataFrame:
        """Return all rows as a table, with the fields of the API as columns."""
        try:
            import pandas
        except ImportError as error:
            raise MissingPackage("A table needs pandas: pip install 'winnow-client[data]'") from error
        found: list[Json] = []
        cursor: str | None = ""
        while cursor is not None:
            rows, cursor = await self._page(cursor)
            found += rows
        return pandas.DataFrame(found)

    async def _page(self, cursor: str) -> tuple[list[Json], str | None]:
        """Return the rows after a cursor, and the cursor of the next page; None after the last."""
        page = await self._read(("limit", str(PAGE)), *([("cursor", cursor)] if cursor else []))
        return page["data"], page["next_cursor"]

    async def _read(self, *params: tuple[str, str]) -> Json:
        return await self._transport.json("GET", self._path, params=[*self._filters, *params])


def query(filters: Mapping[str, Value]) -> Params:
    """Return a filter as parameters of an address: a list is an OR, a list of lists an AND of ORs."""
    found: list[tuple[str, str]] = []
    for name, value in filters.items():
        if isinstance(value, str):
            found.append((name, value))
        elif isinstance(value, Sequence | Set):
            found += [(name, words) for words in _groups(value) if words]
        elif isinstance(value, bool):
            found.append((name, str(value).lower()))
        elif isinstance(value, datetime):
            if value.tzinfo is None:
                raise ValueError(f"{name} needs a time zone, such as datetime.UTC")
            found.append((name, value.astimezone(UTC).isoformat()))
        elif value is not None:
            found.append((name, str(value)))
    return found


def _groups(value: Words | Sequence[Words]) -> list[str]:
    """Return each group of words as a comma list. Words without a list around them are one group."""
    groups: list[Words] = [one for one in value if not isinstance(one, str | int)]
    groups.append([str(one) for one in value if isinstance(one, str | int)])
    return [",".join(str(word).replace(",", "\\,") for word in group) for group in groups]
