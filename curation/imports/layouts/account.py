"""The account of a file's fields: each is mapped, kept as metadata, or ignored, and counted; and the result of reading
one document.
"""

import re
from collections.abc import Collection, ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curation.imports.layouts.session import AgentSession
from curation.imports.sources.rows import BadRow, Fault, SourceRow

IGNORED = "ignored"
NO_PLACE = "ignored: only a trajectory has a place for it"
NO_FIGURE = "ignored: a run has no such number"
NOT_FINITE = "ignored: it is not finite"
# What only a trajectory has a place for.
OF_RUNS = frozenset(
    ("metadata", "reward", "outcome", "model", "agent", "id", "task", "group", "attempt", "cost", "verifier output")
    + ("exception", "timestamp", "usage")
)
EMPTY: tuple[Any, ...] = (None, "", [], {})
REPLACED = "characters replaced by U+FFFD"
# What becomes of files that nothing reads. Their first names are told too, all others are counted by their endings.
UNREAD, UNNAMED = "ignored: no layout reads it", "kept if a document names it"
NO_RUN = "ignored: it has no messages"
SPECIAL = "ignored: a link or a special file"
OUTSIDE, LEFT_BEHIND = "ignored: outside of every task's folder", "ignored: left by version control or another program"
_NOT_READ = frozenset((UNREAD, UNNAMED, NO_RUN, SPECIAL, OUTSIDE, LEFT_BEHIND))
_FILE, MOST_NAMES = "(file) ", 20
# A file whose objects have names of their own, such as ids, would have as many fields as rows.
MOST_FIELDS = 500
OTHERS = "(other fields)"
_FIRST = re.compile(r"[^.\[]+")
_INDEX = re.compile(r"\.\d+(?=\.|$)")


class Account:
    """Counts of rows by field and by what became of it. Fields inside a list have `[]`: `messages[].name`."""

    def __init__(self, entries: Iterable[Mapping[str, Any]] = ()) -> None:
        self._rows: dict[tuple[str, str], int] = {}
        for entry in entries:
            self._rows[entry["field"], entry["becomes"]] = entry["rows"]
        self._names = sum(field.startswith(_FILE) for field, _ in self._rows)

    def add(self, other: "Account") -> None:
        for entry, rows in other._rows.items():
            if entry in self._rows:
                self._rows[entry] += rows
            else:
                self.count(*entry, rows)

    def count(self, field: str, becomes: str, rows: int = 1) -> None:
        """Count a field of one row. Counting it again for the same row is the caller's error."""
        if (field, becomes) not in self._rows and len(self._rows) >= MOST_FIELDS:
            field = OTHERS
        if field.startswith(_FILE) and (field, becomes) not in self._rows:
            if self._names >= MOST_NAMES:
                return
            self._names += 1
        self._rows[field, becomes] = self._rows.get((field, becomes), 0) + rows

    def count_files(self, read: Mapping[str, str]) -> None:
        """Count files by the endings of their names, and what became of each. The first unread ones are named."""
        for name, becomes in read.items():
            _, dot, ending = name.rpartition("/")[2].rpartition(".")
            self.count(f"(files) *.{ending.lower()}" if dot and ending.isalnum() else "(files)", becomes)
            if becomes in _NOT_READ:
                self.count(f"{_FILE}{name}", becomes)

    def count_source(self, row: SourceRow | BadRow) -> None:
        """Count the files that were read since the row before, and the faults of the row's text."""
        if row.read:
            self.count_files(row.read)
        if isinstance(row, SourceRow) and row.faults:
            self.count_faults(row.faults)

    def count_faults(self, faults: Iterable[Fault]) -> None:
        for field, becomes in dict.fromkeys(faults):
            self.count(field, becomes)

    def replace(self, other: "Account") -> None:
        """Count the fields of `other` as it does, and no longer as before."""
        fields = {field for field, _ in other._rows}
        self._rows = {entry: rows for entry, rows in self._rows.items() if entry[0] not in fields}
        self.add(other)

    def without(self, dropped: Collection[str]) -> "Account":
        """Return the account of an import that has no place for what fields become: these are ignored."""
        lost = {becomes for _, becomes in self._rows if becomes.partition(".")[0] in dropped}
        if not lost:
            return self
        account = Account()
        for (field, becomes), rows in self._rows.items():
            account.count(field, NO_PLACE if becomes in lost else becomes, rows)
        return account

    def entries(self) -> list[dict[str, Any]]:
        """Return `{field, rows, becomes}` by field, as results and previews show them."""
        return [
            {"field": field, "rows": rows, "becomes": becomes} for (field, becomes), rows in sorted(self._rows.items())
        ]


class Fields(Mapping[str, Any]):
    """A row's fields, which remember what became of each.

    `get`, `[]` and `in` only look. `take` returns a value and names its place. `names` has the source's own names
    of fields that were renamed before.
    """

    def __init__(self, row: Mapping[str, Any], path: str = "", names: Mapping[str, str] | None = None) -> None:
        self._row = row
        self.path = path
        self._names = names or {}
        self._became: dict[tuple[str, str], None] = {}
        self._taken: set[str] = set()

    def take(self, name: str, becomes: str) -> Any:
        """Return the value, or None, and account for it."""
        if name in self._row:
            self._taken.add(name)
            self._became[self.path + name, becomes] = None
        return self._row.get(name)

    def rest(self, becomes: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Account for the fields that nothing was said of, and return the metadata: those that `becomes` does not
        name."""
        words = becomes or {}
        left = self.left()
        for name in left:
            self.take(name, words.get(name, "metadata"))
        return {name: self._row[name] for name in left if name not in words}

    def inside(self, name: str, becomes: str) -> "Fields":
        """Take an object, and return its fields. Their places are in the same account."""
        inner = Fields(self.take(name, becomes) or {}, f"{self.path}{name}.")
        inner._became = self._became
        return inner

    def ignore_rest(self, inner: Mapping[str, Any], known: Collection[str], path: str) -> None:
        """Account for the fields of an object in a field that nothing is read from."""
        for name, value in inner.items():
            if name not in known and value not in EMPTY:
                self.became(f"{path}.{name}", IGNORED)

    def became_inside(self, path: str, inner: Mapping[str, Any], becomes: Mapping[str, str]) -> None:
        """Account for the fields of an object in a field by what each becomes; those with an empty word need none."""
        for name, value in inner.items():
            if value not in EMPTY and (word := becomes.get(name, IGNORED)):
                self.became(f"{path}.{name}", word)

    def became(self, path: str, becomes: str) -> None:
        """Account for a field inside another one by its path: `messages.3.name` is the field `messages[].name`."""
        self._became[self.path + _INDEX.sub("[]", path), becomes] = None

    def left(self) -> list[str]:
        """Return the names of the fields that nothing was said of yet."""
        return [name for name in self._row if name not in self._taken]

    def source_name(self, field: str) -> str:
        """Return the name of a field, or of one inside of it, in the source."""
        if not self._names:
            return field
        first = _FIRST.match(field)
        name = field if field in self._names or first is None else first[0]
        return self._names.get(name, name) + field[len(name) :]

    def account(self) -> Account:
        """Return the account of this row. Fields that nothing was said of are ignored ones, unless they are empty."""
        account = Account()
        for field, becomes in self._became:
            account.count(self.source_name(field), becomes)
        for name in self.left():
            if self._row[name] not in EMPTY:
                account.count(self.path + name, IGNORED)
        return account

    # Those of the row itself, which are ten times as fast as what `Mapping` makes of the others.
    def get(self, name: str, default: Any = None) -> Any:
        return self._row.get(name, default)

    def keys(self) -> KeysView[str]:
        return self._row.keys()

    def items(self) -> ItemsView[str, Any]:
        return self._row.items()

    def __contains__(self, name: object) -> bool:
        return name in self._row

    def __getitem__(self, name: str) -> Any:
        return self._row[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._row)

    def __len__(self) -> int:
        return len(self._row)


@dataclass(frozen=True, slots=True)
class DocumentReading:
    """The sessions of a document and the account of its fields. `unreadable` has a reason for each part of it that is
    not readable. `without_trajectory` counts runs that have none, such as trials of Harbor's agent `oracle`."""

    sessions: Sequence[AgentSession]
    account: Account
    unreadable: Sequence[str] = ()
    without_trajectory: int = 0
