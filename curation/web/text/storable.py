"""Text from outside that no database would take as it is."""

import json

from curation.web.problems import FieldError

# As JSON writes NUL and half a surrogate pair; a whole pair is written as two halves, and looked at as well.
UNSTORABLE = ("\\u0000", "\\ud")


def storable(text: str) -> str:
    """The text with NUL and lone surrogates, which no database stores, as replacement characters."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def storable_json(value: object) -> object:
    """The same document with every text in it storable, keys too."""
    written = json.dumps(value)
    return _storable_parts(value) if any(mark in written for mark in UNSTORABLE) else value


def _storable_parts(value: object) -> object:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(name)): _storable_parts(inner) for name, inner in value.items()}
    return [_storable_parts(inner) for inner in value] if isinstance(value, list | tuple) else value


def text_errors(name: str, text: str, *, at_most: int) -> list[FieldError]:
    """What keeps a typed text from being stored: its length, or a NUL, which PostgreSQL refuses."""
    if len(text) > at_most:
        return [FieldError(name, f"has more than {at_most:,} characters")]
    if "\x00" in text:
        return [FieldError(name, "contains a NUL character")]
    return []
