"""Keys that an object in JSON has twice: of their values parsers keep the last one."""

import json
from collections import Counter

import orjson

from curation.web.text.storable import storable

_LONGEST_KEY = 100


def repeated_keys(text: bytes, value: object) -> tuple[str, ...]:
    """Return the keys that an object in the text has several times. `value` is what the text was parsed as.

    The value without such keys has as many colons as the text, which is quickly seen.
    """
    try:
        if text.count(b":") == orjson.dumps(value).count(b":"):
            return ()
    except orjson.JSONEncodeError:  # half a surrogate pair, deep nesting
        pass
    found: dict[str, None] = {}

    def note(pairs: list[tuple[str, object]]) -> None:
        if len(dict(pairs)) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            found.update((storable(name)[:_LONGEST_KEY], None) for name, count in counts.items() if count > 1)

    try:
        json.loads(text, object_pairs_hook=note, parse_int=str)
    except (ValueError, RecursionError):
        return ()
    return tuple(found)
