"""Lists of the API, read page by page, and the filters of their addresses."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from winnow.client.errors import MissingPackage
from winnow.client.transport import Json, Params, Transport

if TYPE_CHECKING:
    import pandas

R = TypeVar("R")
Words = Sequence[str] | Sequence[int] | Set[str] | Set[int]
Value = str | int | float | bool | datetime | Words | Sequence[Words] | None
PAGE = 500


class Rows(Generic[R]):
    """The rows of a list, in its order. Each iteration reads them again, in pages of 500."""

    def __init__(
        self, transport: Transport, path: str, filters: Mapping[str, Value], make: Callable[[Json], R]
    ) -> None:
        self._transport = transport
        self._path = path
        self._filters = query(filters)
        self._make = make

    def __iter__(self) -> Iterator[R]:
        return map(self._make, self._read())

    def first(self) -> R | None:
        """Return the first row; None if there is none."""
        found = self._transport.json("GET", self._path, params=[*self._filters, ("limit", "1")])["data"]
        return self._make(found[0]) if found else None

    def count(self) -> int:
        """Count the rows, exactly."""
        params = [*self._filters, ("limit", "1"), ("count", "true")]
        return int(self._transport.json("GET", self._path, params=params)["total"])

    def to_dataframe(self) -> "pandas.DataFrame":
        """Return all rows as a table, with the fields of the API as columns."""
        try:
            import pandas
        except ImportError as error:
            raise MissingPackage("A table needs pandas: pip install 'winnow-curation[data]'") from error
        return pandas.DataFrame(list(self._read()))

    def _read(self) -> Iterator[Json]:
        cursor: list[tuple[str, str]] = []
        while True:
            params = [*self._filters, ("limit", str(PAGE)), *cursor]
            page = self._transport.json("GET", self._path, params=params)
            yield from page["data"]
            if page["next_cursor"] is None:
                return
            cursor = [("cursor", page["next_cursor"])]


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
