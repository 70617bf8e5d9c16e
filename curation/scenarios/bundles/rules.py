"""The rules behind single values of a bundle: paths, modes, names, the last line of a reference solution."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import AfterValidator

from curation.web.problems import FieldError
from sandbox.protocol import ROOTS

# Controls, line ends, and what reorders or hides text: in a name they would let it pose as another.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TERMINAL = re.compile(r"(exit)(?: +0)?|(panic)(?:[ \t]+(.*))?")
# What every session has of its own: a bundle that changed them would be told apart from the machine it pretends to be.
OF_THE_SESSION = frozenset({"HOME", "LOGNAME", "PWD", "SHELL", "USER"})
# Deeper documents than this are nobody's bundle, and too deep for the JSON of a database.
DEEPEST = 12


@dataclass(frozen=True, slots=True)
class Ending:
    """A reference solution taken apart: `body` is executed as one command, then `line` is the terminal.

    `terminal` is `exit` or `panic`, `reason` what follows a panic.
    """

    body: str
    line: str
    terminal: str
    reason: str = ""


def terminal_of(reference: str) -> Ending | None:
    """The last line that is neither blank nor a comment, and what stands before it; None where it is no terminal."""
    lines = reference.splitlines()
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    if not lines:
        return None
    line = lines[-1].strip()
    found = _TERMINAL.fullmatch(line)
    if found is None:
        return None
    body = "\n".join(lines[:-1])
    return Ending(body, line, found[1] or found[2], (found[3] or "").strip())


def one_line(text: str) -> str:
    """A title or a name."""
    if _CONTROL.search(text):
        raise ValueError("holds control characters, line breaks or invisible signs")
    return text


def plain_mode(mode: str) -> str:
    """`0755` and `755` are the same permissions: the latter is kept."""
    return mode[-3:]


def fixture_path(path: str) -> str:
    """An absolute path below one of the writable roots, in its one spelling."""
    if not path.startswith("/"):
        raise ValueError("must be absolute")
    if _CONTROL.search(path):
        raise ValueError("holds control characters")
    if path.endswith("/"):
        raise ValueError("must name a file, not a directory")
    parts = path[1:].split("/")
    if any(part in {"", ".", ".."} for part in parts):
        raise ValueError("must not hold `//`, `.` or `..`")
    if any(len(part.encode()) > 255 for part in parts):
        raise ValueError("has a name of more than 255 bytes")
    if path in ROOTS:
        raise ValueError(f"{path} is a directory")
    if not any(path.startswith(f"{root}/") for root in ROOTS):
        raise ValueError(f"must lie below {', '.join(ROOTS)}")
    return path


def axis_value(given: object) -> object:
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise ValueError("a word or a whole number is wanted")
    return given


def env_name_error(name: str) -> str:
    """What is wrong with the name of a variable; empty where nothing is."""
    if not _ENV_NAME.fullmatch(name):
        return "a name of letters, digits and `_`, not a digit first, is wanted"
    return "is set by the sandbox" if name in OF_THE_SESSION else ""


def unstorable(document: object) -> list[FieldError]:
    """Texts and keys that no database and no shell takes, each at its place; and a document that is too deep."""
    errors = []
    for path, value in _walk(document):
        if value is None:
            return [FieldError(path, f"nested deeper than {DEEPEST} levels")]
        if "\0" in value:
            errors.append(FieldError(path, "holds a NUL character; a file with one is sent as `base64`"))
        elif _SURROGATE.search(value):
            errors.append(FieldError(path, "holds half of a character (a lone surrogate)"))
    return errors


def _walk(document: object) -> Iterator[tuple[str, str | None]]:
    """All texts and keys with their paths; None where it goes too deep. Its own stack: the sender chose the depth."""
    waiting: list[tuple[tuple[str, ...], object]] = [((), document)]
    while waiting:
        path, value = waiting.pop()
        if len(path) > DEEPEST:
            yield ".".join(path), None
        elif isinstance(value, dict):
            for key, inner in value.items():
                yield ".".join((*path, "key")), str(key)
                waiting.append(((*path, str(key)[:100]), inner))
        elif isinstance(value, list):
            waiting += [((*path, str(index)), inner) for index, inner in enumerate(value)]
        elif isinstance(value, str):
            yield ".".join(path), value


ONE_LINE = AfterValidator(one_line)
PLAIN_MODE = AfterValidator(plain_mode)
FIXTURE_PATH = AfterValidator(fixture_path)
