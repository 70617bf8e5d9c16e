"""What a parser of JSON leaves out without an error: of a key that an object has twice all values but the last, and
numbers that are not finite."""

import json
import math
from collections import Counter

import orjson

from curation.web.text.storable import storable

# A field of an account, and what becomes of it.
Fault = tuple[str, str]
_NOT_FINITE: Fault = ("(numbers that are not finite)", "null")
_LONGEST_KEY = 100


def json_faults(text: bytes, value: object) -> tuple[Fault, ...]:
    """Return the faults of a text. `value` is what a strict parser made of it, or None if that refuses it.

    A value without such keys has as many colons as its text, which is quickly seen.
    """
    try:
        if text.count(b":") == orjson.dumps(value).count(b":"):
            return ()
    except orjson.JSONEncodeError:  # deep nesting
        pass
    found: dict[Fault, None] = {}

    def note_pairs(pairs: list[tuple[str, object]]) -> None:
        if len(dict(pairs)) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice = (storable(name)[:_LONGEST_KEY] for name, count in counts.items() if count > 1)
            found.update(((f"(twice in an object) {name}", "ignored but for the last value"), None) for name in twice)

    def note_number(number: str) -> None:
        if not math.isfinite(float(number)):
            found[_NOT_FINITE] = None

    try:
        json.loads(
            text, object_pairs_hook=note_pairs, parse_int=str, parse_float=note_number, parse_constant=note_number
        )
    except (ValueError, RecursionError):
        return ()
    return tuple(found)
