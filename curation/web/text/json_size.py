"""How many values a JSON text may have: two bytes of it can become sixty in memory, and each is read and checked."""

import re

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


def _signs(text: bytes) -> int:
    """Each value follows a comma or a bracket."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")
