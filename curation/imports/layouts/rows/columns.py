"""The columns of one row, by their names in lower case. Empty ones are as good as missing."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from curation.imports.layouts.account import EMPTY, IGNORED, Fields
from curation.imports.layouts.messages.calls import decoded
from curation.imports.layouts.messages.read import Messages, read_messages

# Levels of objects in which such facts are found.
_INSIDE = 2


class Columns:
    """Reads columns and accounts for them. `roles` are those that a person has mapped."""

    def __init__(self, fields: Fields, roles: Mapping[str, str] | None) -> None:
        self.fields = fields
        self._roles = roles
        self._names: dict[str, str] = {}
        for name, value in fields.items():
            if value not in EMPTY:
                self._names.setdefault(name.lower(), name)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def present(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name in self._names]

    def get(self, name: str) -> Any:
        """Return a value, with JSON text of messages decoded."""
        return decoded_messages(self.fields[self._names[name]]) if name in self._names else None

    def take(self, name: str, becomes: str) -> Any:
        """Return the value of a column that is not empty, and account for it."""
        return decoded_messages(self.fields.take(self._names[name], becomes))

    def messages(self, given: Any, path: str) -> Messages:
        return read_messages(given, self.fields.source_name(path), self.fields, self._roles)

    def answer(self, given: Any, path: str) -> Messages:
        """Read a side or a completion: text of the agent, one message, or a list of messages."""
        if is_message(given):
            return self.messages([given], path)
        if isinstance(given, list) and given and all(map(is_message, given)):
            return self.messages(given, path)
        if calls := _calls(given):
            return self.messages([{"role": "assistant", "content": "", "tool_calls": calls}], path)
        return self.messages([{"role": "assistant", "content": flat(given)}], path)

    def ignore_rest(self, inner: Mapping[str, Any], known: Iterable[str], path: str) -> None:
        """Account for the fields of an object in a column that nothing is read from."""
        for name in inner.keys() - set(known):
            if inner[name] not in EMPTY:
                self.fields.became(f"{path}.{name}", IGNORED)


def _calls(given: Any) -> list[Any]:
    """Return the calls of a column that has nothing else, which may be JSON text."""
    found = decoded(given)
    calls = found if isinstance(found, list) else []
    is_call = all(isinstance(one, Mapping) and {"name", "arguments"} == one.keys() for one in calls)
    return calls if is_call else []


def is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and not _MARKS.isdisjoint(value)


_MARKS = frozenset(("role", "from", "sender", "author", "type", "lc"))
# Objects that have facts of a logged call beside its messages.
_HOLDERS = (
    *("metadata", "extra", "extra_info", "model_parameters", "invocation_params", "config", "metrics", "usage"),
    *("summary", "token_usage", "attributes"),
)


def inside(row: Mapping[str, Any], names: Iterable[str], fits: Callable[[Any], bool]) -> tuple[str, Any]:
    """Return the path and the value of the first of these names in the objects of a row that have such facts, or an
    empty path."""
    wanted = tuple(names)
    holders = [(name, decoded(row[name])) for name in row if name.lower() in _HOLDERS]
    for path, holder in holders:
        if not isinstance(holder, Mapping):
            continue
        for name, value in holder.items():
            if name in wanted and fits(value):
                return f"{path}.{name}", value
            if path.count(".") < _INSIDE:
                holders.append((f"{path}.{name}", value))
    return "", None


def decoded_messages(value: Any) -> Any:
    """Return the messages in JSON text, or in a list of JSON texts, as Parquet files store them, and any other value as
    it is."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        found: Any = [decoded(part) for part in value]
    else:
        found = decoded(value)
    if found is value:
        return value
    parts = found if isinstance(found, list) else [found]
    is_read = all(is_message(part) or (isinstance(part, Mapping) and "messages" in part) for part in parts)
    return found if parts and is_read else value


def flat(value: Any) -> str:
    """Return a value as text: a list on lines of its own, an object as JSON."""
    if isinstance(value, str):
        return value
    return "\n".join(map(flat, value)) if isinstance(value, list) else orjson.dumps(value).decode()
