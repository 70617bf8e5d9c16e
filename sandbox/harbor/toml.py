"""TOML that strangers write."""

import re
import tomllib
from typing import Any

# `tomllib` takes quadratic time and memory for a key of many parts: 64 KiB of them are 4 GB.
MOST_PARTS = 64
_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*"""
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*(?:{_PART}){{{MOST_PARTS}}}", re.MULTILINE)


def read_toml(text: str) -> dict[str, Any]:
    """Return the document. Raises `ValueError`, and `RecursionError` for one that is nested beyond the interpreter's
    depth."""
    if _LONG_KEY.search(text):
        raise ValueError(f"a key has more than {MOST_PARTS} parts")
    return tomllib.loads(text)
