"""Rules for single values of a bundle: paths, modes, names, the last line of a reference solution."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import AfterValidator

from curation.web.problems import FieldError
from sandbox.protocol import ROOTS

# Control characters, line breaks and characters that reorder or hide text: with them a name could look like another.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TERMINAL = re.compile(r"(exit)(?: +0)?|(panic)(?:[ \t]+(.*))?")
# Set by every session. A bundle that changed them would not look like the machine it describes.
SESSION_VARIABLES = frozenset({"HOME", "LOGNAME", "PWD", "SHELL", "USER"})
# No bundle is nested deeper, and a database's JSON is limited too.
MAX_DEPTH = 12


@dataclass(frozen=True, slots=True)
class SolutionEnding:
    """The parts of a reference solution: `body` is executed as one command, then `line` is the terminal.

    `terminal` is `exit` or `panic`; `reason` is the text after `panic`.
    """

    body: str
    line: str
    terminal: str
    reason: str = ""


def terminal_of(reference: str) -> SolutionEnding | None:
    """Split off the last line that is neither blank nor a comment; None if it is not a terminal."""
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
    return SolutionEnding(body, line, found[1] or found[2], (found[3] or "").strip())


def one_line(text: str) -> str:
    """A title or a name."""
    if _CONTROL.search(text):
        raise ValueError("contains control characters, line breaks or invisible characters")
    return text


def plain_mode(mode: str) -> str:
    """Store `0755` as `755`."""
    return mode[-3:]


def fixture_path(path: str) -> str:
    """A normalized absolute path below one of the writable roots."""
    if not path.startswith("/"):
        raise ValueError("must be absolute")
    if _CONTROL.search(path):
        raise ValueError("contains control characters")
    if path.endswith("/"):
        raise ValueError("must name a file, not a directory")
    parts = path[1:].split("/")
    if any(part in {"", ".", ".."} for part in parts):
        raise ValueError("must not contain `//`, `.` or `..`")
    if any(len(part.encode()) > 255 for part in parts):
        raise ValueError("has a name of more than 255 bytes")
    if path in ROOTS:
        raise ValueError(f"{path} is a directory")
    if not any(path.startswith(f"{root}/") for root in ROOTS):
        raise ValueError(f"must be below {', '.join(ROOTS)}")
    return path


def axis_value(given: object) -> object:
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise ValueError("must be a string or an integer")
    return given


def env_name_error(name: str) -> str:
    """The reason why a variable must not have this name, or an empty string."""
    if not _ENV_NAME.fullmatch(name):
        return "must consist of letters, digits and `_` and not begin with a digit"
    return "is set by the sandbox" if name in SESSION_VARIABLES else ""


def storage_errors(document: object) -> list[FieldError]:
    """Texts and keys that a database or a shell cannot store, each with its path; and a document that is too deep."""
    errors = []
    for path, value in _walk(document):
        if value is None:
            return [FieldError(path, f"nested deeper than {MAX_DEPTH} levels")]
        if "\0" in value:
            errors.append(FieldError(path, "contains a NUL character; send such a file as `base64`"))
        elif _SURROGATE.search(value):
            errors.append(FieldError(path, "contains half of a character (a lone surrogate)"))
    return errors


def _walk(document: object) -> Iterator[tuple[str, str | None]]:
    """All texts and keys with their paths; None below the maximum depth. Not recursive: the sender chose the depth."""
    waiting: list[tuple[tuple[str, ...], object]] = [((), document)]
    while waiting:
        path, value = waiting.pop()
        if len(path) > MAX_DEPTH:
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
