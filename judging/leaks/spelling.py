"""Names and paths in their spellings: `max_size`, `maxSize` and `max-size` are one name."""

import re

from judging.leaks.tokens import has_extension
from judging.leaks.vocabulary import GENERIC_FILES, GENERIC_PARTS, is_placeholder

# The field of an accessor has two words or more: `get_name` says nothing about `name`.
_ACCESSOR = re.compile(r"[gs]et(?:_?)((?:[A-Z][a-z0-9]+){2,}|[a-z0-9]+(?:_[a-z0-9]+)+)")


def squash(text: str) -> str:
    """Lower case without hyphens and underscores, so that all spellings of a name are equal."""
    return text.lower().replace("_", "").replace("-", "")


def spellings(name: str) -> list[str]:
    """Return a name and the others that tell of it: `lockTimeout` and `set_lock_timeout` of `getLockTimeout`."""
    match = _ACCESSOR.fullmatch(name)
    field = match[1] if match else name
    return [name, field, f"get_{field}", f"set_{field}"] if match or len(name_parts(name)) > 1 else [name]


def name_parts(name: str) -> list[str]:
    """Split a name at underscores, hyphens and case changes, lower case."""
    spaced = re.sub(r"([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])", r"\1\3 \2", name)
    return [part.lower() for part in re.split(r"[\s_.-]+", spaced) if part]


def words_of_test(name: str) -> list[str]:
    """Return the words of a test's name without those that say that it is a test."""
    return [part for part in name_parts(name) if part not in ("test", "tests", "spec")]


def normal_path(path: str) -> str:
    """Remove `./`, a leading slash, `~/` and a closing slash."""
    return re.sub(r"^(?:~|\.{1,2})?/+|^(?:\.{1,2}/)+", "", path).rstrip("/").removeprefix("./")


def is_same_path(one: str, other: str) -> bool:
    """Whether one path is the other or its end, part by part."""
    short, long = sorted((one, other), key=len)
    return long == short or long.endswith("/" + short)


def is_generic_path(path: str) -> bool:
    """Whether every part of a path is one that any repository may have."""
    *folders, name = path.split("/")
    ends_generic = name in GENERIC_FILES or is_placeholder(name) or (name in GENERIC_PARTS and not has_extension(name))
    return ends_generic and all(folder in GENERIC_PARTS or is_placeholder(folder) for folder in folders)


def find_bounded(text: str, piece: str, joining: str) -> int:
    """Return where `piece` occurs in `text` with neither a letter, a digit nor one of `joining` beside it, or -1.

    Plain searching with a look at the neighbours: a look-behind pattern would cost a hundred times as much.
    """
    at = text.find(piece)
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(piece) : at + len(piece) + 1]
        if not (before.isalnum() or after.isalnum() or (before and before in joining) or (after and after in joining)):
            return at
        at = text.find(piece, at + 1)
    return -1


def respelled(name: str) -> re.Pattern[str]:
    parts = r"[_-]?".join(map(re.escape, name_parts(name)))
    return re.compile(rf"(?<![a-z0-9]){parts}(?![a-z0-9])", re.IGNORECASE)
