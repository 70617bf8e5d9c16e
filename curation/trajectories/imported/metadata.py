"""The short values of a session's metadata, as filters compare them."""

from collections.abc import Iterator, Mapping
from typing import Any

from curation.trajectories.models import TrajectoryMetadata

# More values of one trajectory are in its metadata, but are no filters.
MOST_VALUES = 60
_DEPTH = 3
_LONGEST = {field.name: field.max_length or 0 for field in TrajectoryMetadata._meta.concrete_fields}


def short_values(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the short values by their names, those of objects as `extra.set`; true and false in lower case."""
    found: dict[str, str] = {}
    for name, value in _named(metadata, "", 1):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if len(name) <= _LONGEST["name"] and 0 < len(text) <= _LONGEST["value"] and len(found) < MOST_VALUES:
            found.setdefault(name, text)
    return found


def _named(values: Mapping[str, Any], path: str, depth: int) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            if depth < _DEPTH:
                yield from _named(value, f"{path}{name}.", depth + 1)
        elif isinstance(value, str | bool | int | float):
            yield f"{path}{name}", value
