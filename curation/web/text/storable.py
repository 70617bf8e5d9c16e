"""Text and JSON as a database stores them: values from outside that it cannot store are refused, or replaced if a
program wrote them; and JSON columns as text, which orjson parses and writes several times as fast as Django's module.
"""

import json
import math
import re
from typing import Any, NoReturn

import orjson

from curation.web.problems import FieldError, Invalid, Problem, TooLarge

# The limit of a BigIntegerField; a JSON library may read a larger number as a float.
LARGEST_INTEGER = 2**63 - 1
DEEPEST = 64
# Two bytes of JSON can become sixty in memory, and each value is read and checked.
MOST_VALUES = 1_000_000

# NUL and half a surrogate pair in JSON. A whole pair matches too and is then left unchanged.
UNSTORABLE = ("\\u0000", "\\ud")


def storable(text: str) -> str:
    """The text with NUL and lone surrogates as replacement characters."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()


def printable(text: str) -> str:
    """The text in one line, for a name that a stranger chose: unprintable characters become replacement characters."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


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
    """Errors that keep a typed text from being stored: its length or its characters."""
    if len(text) > at_most:
        return [FieldError(name, f"has more than {at_most:,} characters")]
    reason = _unstorable(text)
    return [FieldError(name, reason)] if reason else []


def read_json(text: str | bytes, *, path: str = "") -> Any:
    """Parse JSON that a person or program sent. Raises `Problem` if it is not JSON, `Invalid` if it is unstorable,
    `TooLarge` if it has too many values.

    Every request body, and every JSON text in a form, is read here.
    """
    refuse_many_values(text)
    try:
        # Python's parser takes UTF-16 as well, in which values cannot be counted.
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise Invalid.fields([FieldError(path, TOO_DEEP)]) from None
    except ValueError as error:
        if path:
            raise Invalid.fields([FieldError(path, f"not JSON: {error}")], code="not_json") from None
        raise Problem(f"This is not JSON: {error}.", code="not_json") from None
    refuse_unstorable(value, path=path)
    return value


def refuse_unstorable(value: object, *, path: str = "") -> None:
    """Raise `Invalid` with the path of the first text, number or level of nesting that no JSON column stores."""
    if _is_storable(value):
        return
    waiting: list[tuple[object, tuple[str, ...]]] = [(value, (path,) if path else ())]
    while waiting:
        part, at = waiting.pop()
        if len(at) > DEEPEST:
            # The whole path would be as long as the nesting is deep.
            raise Invalid.fields([FieldError(".".join(at[:1]), TOO_DEEP)])
        if isinstance(part, dict):
            if reason := next((found for key in part if (found := _unstorable(key))), ""):
                raise Invalid.fields([FieldError(".".join(at), f"the name of a field {reason}")])
            waiting += [(inner, (*at, key)) for key, inner in reversed(part.items())]
        elif isinstance(part, list | tuple):
            waiting += [(inner, (*at, str(number))) for number, inner in reversed(list(enumerate(part)))]
        elif reason := _unstorable(part):
            raise Invalid.fields([FieldError(".".join(at), reason)])


def _is_storable(value: object) -> bool:
    """The same without the path, which costs twenty times as much; level by level."""
    level: list[object] = [value]
    for _ in range(DEEPEST):
        below: list[object] = []
        for part in level:
            if isinstance(part, dict):
                if any(_unstorable(key) for key in part):
                    return False
                below += part.values()
            elif isinstance(part, list | tuple):
                below += part
            elif _unstorable(part):
                return False
        if not below:
            return True
        level = below
    return False


TOO_DEEP = f"has more than {DEEPEST} levels of nesting"
_SURROGATE = re.compile("[\ud800-\udfff]")


def _unstorable(value: object) -> str:
    """Why a text or number cannot be stored, or an empty string."""
    if isinstance(value, str):
        if "\x00" in value:
            return "contains a NUL character"
        return "contains half a surrogate pair" if not value.isascii() and _SURROGATE.search(value) else ""
    if isinstance(value, int):
        return "" if -LARGEST_INTEGER <= value <= LARGEST_INTEGER else "is a number with too many digits"
    return "is not a finite number" if isinstance(value, float) and not math.isfinite(value) else ""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


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


def read_column(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        # JSON can escape half of a surrogate pair. Such a row is not exported, because UTF-8 cannot encode it.
        return json.loads(text)


def column_text(value: object) -> str:
    """Return a value as JSON text, the same for the same value and order of keys."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return json.dumps(value)


class CompactEncoder(json.JSONEncoder):
    """Of columns with long texts: without blanks, and with characters as they are instead of escapes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"separators": (",", ":"), "ensure_ascii": False})

    def encode(self, o: Any) -> str:
        """Return the JSON. The fast writer refuses numbers of more than 64 bits, which Python's own writes."""
        try:
            return orjson.dumps(o).decode()
        except orjson.JSONEncodeError:
            return super().encode(o)
