"""Logs of coding agents, by the package `atif-make`: Copilot and Cursor, and HAR files. Each file is one session."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from curation.imports.layouts.account import REPLACED, Account, DocumentReading
from curation.imports.layouts.agents import atif
from curation.imports.layouts.clean import clean
from curation.imports.layouts.session import Json
from curation.imports.sources.rows import RowRefused

NAME = "log of a coding agent"
# As many lines at the beginning of a file may say nothing about its program.
HEAD = 60
_CURSOR = frozenset(("user", "assistant"))
_COPILOT = ("session.", "assistant.", "user.message")
# The lines that atif-make reads, by their type, and what of a line it reads.
_LINES = {
    **dict.fromkeys(("user", "assistant", "user.message", "assistant.message", "tool.execution_complete"), "steps"),
    "lines that are no JSON": "ignored",
}
_PARTS = frozenset(
    ("type", "subtype", "role", "message", "timestamp", "usage", "model", "tools")
    + ("uuid", "sessionId", "session_id", "cwd", "version", "isMeta", "data", "id")
)


def fits_lines(lines: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a file that begins with these lines is such a log."""
    return any(_is_line(line) for line in lines)


def fits(document: Mapping[str, Any]) -> bool:
    """Whether a document is a HAR file."""
    log = document.get("log")
    return isinstance(log, dict) and isinstance(log.get("entries"), list) and "version" in log


def _is_line(line: Mapping[str, Any]) -> bool:
    kind, message = line.get("type"), line.get("message")
    if isinstance(kind, str) and kind.startswith(_COPILOT):
        return True
    # Cursor has the role beside the message.
    if line.get("role") not in _CURSOR or not isinstance(message, dict) or "role" in message:
        return False
    return isinstance(message.get("content"), list)


def read(path: Path) -> DocumentReading:
    """Return the session of a log on disk. Raises `RowRefused`, also where `atif-make` is not installed."""
    try:
        from atif_make import convert
    except ImportError:
        raise RowRefused(
            f"a {NAME} is read by the package atif-make, which is not installed: it is the extra `agents`, and needs "
            "Python 3.12"
        ) from None
    try:
        trajectory, layout = convert(path)
    except (ValueError, LookupError, TypeError, AttributeError) as error:  # of lines in a form that it does not expect
        raise RowRefused(f"atif-make cannot read it: {error}"[:300]) from None
    document, replaced = clean(_with_images(trajectory), "")
    document.pop("notes", None)  # the name of the file on this disk
    reading = atif.read(document)
    account = Account()
    for name, becomes in _became(path).items():
        account.count(name, becomes)
    for place in replaced:
        account.count(place, REPLACED)
    return DocumentReading([replace(session, layout=layout) for session in reading.sessions], account)


def _with_images(trajectory: Any) -> Json:
    """Return the document with the bytes of its images in place of their names."""
    document: Json = trajectory.to_dict()
    images = {
        f"images/{media.name}": f"data:{media.media_type};base64,{base64.b64encode(media.data).decode()}"
        for media in trajectory.all_media().items.values()
    }
    return _replaced(document, images) if images else document


def _replaced(value: Any, images: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        is_source = "media_type" in value and value.get("path") in images
        return (
            {**value, "path": images[value["path"]]}
            if is_source
            else {k: _replaced(v, images) for k, v in value.items()}
        )
    return [_replaced(inner, images) for inner in value] if isinstance(value, list) else value


def _became(path: Path) -> dict[str, str]:
    """Return what becomes of the lines of each type, and of the fields beside their message."""
    found: dict[str, str] = {}
    for line in _lines(path):
        kind = str(line.get("type", line.get("role", "")))
        found.setdefault(kind, _LINES.get(kind, "ignored: it is no turn"))
        for part in line.keys() - _PARTS:
            found.setdefault(f"{kind}.{part}", "ignored")
    return found


def _lines(path: Path) -> Iterator[Json]:
    """Yield the objects in the lines; one that is no JSON has the type of that name."""
    with path.open("rb") as file:
        for text in file:
            try:
                line = orjson.loads(text)
            except orjson.JSONDecodeError:
                line = {"type": "lines that are no JSON"}
            if isinstance(line, dict):
                yield line
