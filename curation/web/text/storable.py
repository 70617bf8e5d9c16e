"""Text from outside with characters that a database cannot store."""

import json

from curation.web.problems import FieldError

# NUL and half a surrogate pair in JSON. A whole pair matches too and is then left unchanged.
UNSTORABLE = ("\\u0000", "\\ud")


def storable(text: str) -> str:
    """The text with NUL and lone surrogates as replacement characters."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def storable_json(value: object) -> object:
    """The document with every text in it storable, keys too."""
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


def holds_nul(given: object) -> bool:
    """Whether a text, or one inside lists and dictionaries, has U+0000, which PostgreSQL cannot store."""
    if isinstance(given, dict):
        return any(holds_nul(key) or holds_nul(value) for key, value in given.items())
    if isinstance(given, list):
        return any(holds_nul(value) for value in given)
    return isinstance(given, str) and "\x00" in given
