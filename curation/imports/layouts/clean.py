"""Values that every database stores: NUL and half surrogates become U+FFFD, and numbers that are not finite null."""

import math
import re
from typing import Any

import orjson

from curation.imports.sources.rows import RowRefused

LARGEST_INTEGER = 2**63 - 1
# orjson writes 254 levels. A row becomes a part of other documents, which have the rest.
DEEPEST, WRITTEN = 200, 254
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def clean(value: Any, path: str) -> tuple[Any, list[str]]:
    """Return the value, and the paths of the texts that had such characters, with `[]` for the items of lists.

    Raises `RowRefused` for a number of more than 64 bits and for more than `DEEPEST` levels of nesting.
    """
    try:
        written = orjson.dumps(value)
        if written.count(b"[") + written.count(b"{") > DEEPEST:  # it may be nested too deeply
            written = orjson.dumps(_nested(value))
    except orjson.JSONEncodeError:  # half a surrogate pair, a large number, deep nesting
        written = b""
    # Nearly every row is known as clean by how it is written: this is twenty times as fast as to look at each text.
    if written and b"\\u0000" not in written:
        return value, []
    replaced: dict[str, None] = {}
    return _clean(value, path, replaced, 0), list(replaced)


def _nested(value: Any) -> Any:
    """Return the value inside of so many lists that orjson refuses one of more than `DEEPEST` levels."""
    for _ in range(WRITTEN - DEEPEST):
        value = [value]
    return value


def clean_text(text: str) -> str:
    return _UNSTORABLE.sub(_REPLACEMENT, text)


def _clean(value: Any, path: str, replaced: dict[str, None], depth: int) -> Any:
    if depth > DEEPEST:
        raise RowRefused(f"{path.split('.')[0]} has more than {DEEPEST} levels of nesting")
    if isinstance(value, str):
        text = clean_text(value)
        if text is not value and text != value:
            replaced[path] = None
        return text
    if isinstance(value, dict):
        prefix = f"{path}." if path else ""
        return {
            _clean(name, path or "(names of fields)", replaced, depth): _clean(
                inner, f"{prefix}{name}", replaced, depth + 1
            )
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [_clean(inner, f"{path}[]", replaced, depth + 1) for inner in value]
    if isinstance(value, int) and not -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
        raise RowRefused(f"{path} is a number with too many digits")
    return None if isinstance(value, float) and not math.isfinite(value) else value
