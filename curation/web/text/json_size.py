"""How many values a JSON text may have: two bytes of it can become sixty in memory, and each is read and checked."""

import re
from typing import Any

import orjson

from curation.web.problems import TooLarge

MOST_VALUES = 1_000_000
# A string that is never closed reaches to the end: looking for its end again from each quote in it takes hours.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


def has_many_values(text: bytes) -> bool:
    """Whether it has more than `MOST_VALUES`. Text in a string that looks like a value does not count."""
    is_long = len(text) > MOST_VALUES and _signs(text) > MOST_VALUES
    return is_long and _signs(_STRING.sub(b"", text)) > MOST_VALUES


def refuse_many_values(text: str | bytes) -> None:
    """Raise `TooLarge` before such a text is parsed."""
    if has_many_values(text.encode(errors="replace") if isinstance(text, str) else text):
        raise TooLarge(f"The JSON has more than {MOST_VALUES:,} values. Send it in parts, or as a file of rows.")


def parse_inner(text: str | bytes) -> Any:
    """Return the value of JSON text inside a row or a file. Raises `ValueError` if it is none or has too many values.

    Text in a row counts as one value when the row is read, so its values are counted here.
    """
    encoded = text.encode(errors="replace") if isinstance(text, str) else text
    if len(encoded) > MOST_VALUES and has_many_values(encoded):
        raise ValueError(f"it has more than {MOST_VALUES:,} values")
    return orjson.loads(encoded)


def _signs(text: bytes) -> int:
    """Each value follows a comma or a bracket."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")
