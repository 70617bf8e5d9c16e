"""Messages of LangChain as plain ones: unwrapped, with what `additional_kwargs` has beside them."""

from collections.abc import Mapping
from typing import Any

_TYPES = {"Human": "human", "AI": "ai", "System": "system", "Tool": "tool", "Function": "function"}


def unwrapped(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message of `{"type": "human", "data": …}`, of a serialised `HumanMessage`, or the entry as it is."""
    if entry.get("lc") is not None and isinstance(inner := entry.get("kwargs"), Mapping):
        name = entry["id"][-1] if isinstance(entry.get("id"), list) and entry["id"] else ""
        word = str(name).removesuffix("Chunk").removesuffix("Message")
        return unwrapped({"type": _TYPES.get(word, word), **inner})
    if isinstance(inner := entry.get("data"), Mapping) and "content" in inner and "content" not in entry:
        return unwrapped({"type": entry.get("type"), **inner})
    more = entry.get("additional_kwargs")
    if not isinstance(more, Mapping):
        return entry
    found = {key: value for key, value in entry.items() if key != "additional_kwargs"}
    # LangChain repeats the calls of the provider in its own form.
    return found | {key: value for key, value in more.items() if not found.get(key)}
