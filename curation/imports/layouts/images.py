"""Images in the messages and results of a session: data in the text, files beside the document, and addresses."""

import base64
import binascii
import mimetypes
import re
from collections.abc import Callable
from dataclasses import replace

from curation.imports.layouts.account import Account
from curation.imports.layouts.session import AgentSession, Json, Step
from curation.imports.sources.rows import RowRefused

MB = 1024 * 1024
MOST_IMAGE, MOST_IMAGES = 10 * MB, 64 * MB  # bytes of one, and of all of a session
# In an account: the field, and what becomes of an image.
FIELD = "(images)"
KEPT, REMOTE = "image", "the address of an image, which is not fetched"
MISSING, UNREADABLE = "ignored: its file is not beside the document", "text: its data is not Base64"
_DATA = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)(?:;[\w=-]+)*;base64,(?P<data>.*)", re.DOTALL)
_ADDRESS = re.compile(r"[a-zA-Z][\w+.-]*:")
_SIGNS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
# Returns the content of a file by its path relative to a document, or None if there is none.
Beside = Callable[[str], bytes | None]


def read_images(session: AgentSession, beside: Beside, account: Account) -> AgentSession:
    """Return the session with the files beside its document as data, and count what becomes of its images.

    Raises `RowRefused` for images of more than `MOST_IMAGE` bytes, or `MOST_IMAGES` together.
    """
    total = 0
    found: set[str] = set()

    def read(path: str) -> str:
        nonlocal total
        content = image_data(path)
        if content is not None:
            found.add(KEPT)
        elif _ADDRESS.match(path):
            found.add(UNREADABLE if path.startswith("data:") else REMOTE)
            return path
        else:
            content = beside(path)
            found.add(MISSING if content is None else KEPT)
            if content is None:
                return path
        total += len(content)
        if len(content) > MOST_IMAGE or total > MOST_IMAGES:
            limits = f"{MOST_IMAGE // MB} MB each and {MOST_IMAGES // MB} MB together"
            raise RowRefused(f"an image has {len(content) / MB:.1f} MB; images may have {limits}")
        return path if path.startswith("data:") else _as_data(path, content)

    session = change_images(session, read)
    for becomes in found:
        account.count(FIELD, becomes)
    return session


def change_images(session: AgentSession, change: Callable[[str], str]) -> AgentSession:
    """Return the session with other paths of its images, and of those of its subagents."""
    steps = [_changed(step, change) for step in session.steps]
    inner = [change_images(one, change) for one in session.subagents]
    return replace(session, steps=steps, subagents=inner)


def change_parts(parts: list[Json], change: Callable[[str], str]) -> list[Json]:
    """Return the parts of a message of ATIF with other paths of images."""
    return [
        {**part, "source": {**part["source"], "path": change(part["source"]["path"])}}
        if part.get("type") == "image"
        else part
        for part in parts
    ]


def image_data(path: str) -> bytes | None:
    """Return the content of an image whose path is a `data:` address in Base64, else None."""
    found = _DATA.fullmatch(path)
    if not found:
        return None
    try:
        return base64.b64decode("".join(found["data"].split()), validate=True)
    except binascii.Error:
        return None


def image_type(content: bytes) -> str:
    """Return the media type by the first bytes. Content that is no PNG, JPEG, GIF or WebP is shown by nobody."""
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for sign, kind in _SIGNS.items() if content.startswith(sign)), "application/octet-stream")


def _changed(step: Step, change: Callable[[str], str]) -> Step:
    if isinstance(step["message"], list):
        step = {**step, "message": change_parts(step["message"], change)}
    observation = step.get("observation")
    if observation and [one for one in observation["results"] if isinstance(one.get("content"), list)]:
        results = [
            {**one, "content": change_parts(one["content"], change)} if isinstance(one.get("content"), list) else one
            for one in observation["results"]
        ]
        step = {**step, "observation": {**observation, "results": results}}
    return step


def _as_data(path: str, content: bytes) -> str:
    kind = mimetypes.guess_type(path)[0] or image_type(content)
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
