"""Archives and compressed files with other contents inside: right names alone must not pass."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from functools import partial

from sandbox.gate.foreign import FOREIGN, scrambled

MAX_INSIDE = 4 * 1024 * 1024
# So many files of an archive are changed or left out alone.
MAX_ALONE = 6
# The name of a file inside (empty in compressed data that has none) and its content → its new content, or None if it is
# left out.
_Change = Callable[[str, bytes], bytes | None]
_Packed = tuple[bytes, Callable[[bytes], bytes]]


def wrong_insides(data: bytes, known: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Return what to call it, and the archive with wrong contents under right names; nothing if it is no archive.

    `known` are words of the checker.
    """
    try:
        for says, change in _changes(data, known):
            differs: list[bool] = []
            changed = _changed(data, partial(_noted, change, differs))
            if changed is not None and any(differs):
                yield says, changed
    except (
        OSError,
        EOFError,
        ValueError,
        zlib.error,
        lzma.LZMAError,
        tarfile.TarError,
        zipfile.BadZipFile,
        RuntimeError,  # an encrypted ZIP
    ):
        return


def _changes(data: bytes, known: Collection[str]) -> Iterator[tuple[str, _Change]]:
    names: list[str] = []

    def noted(name: str, inside: bytes) -> bytes:
        names.append(name)
        return inside

    _changed(data, noted)
    yield "every file in it emptied", lambda name, inside: b""
    yield "other contents in it", lambda name, inside: _other(inside)
    yield "other values in it, the checker's own words kept", lambda name, inside: _other(inside, known)
    for one in names[: MAX_ALONE - 1] + names[MAX_ALONE - 1 :][-1:] if len(names) > 1 else ():
        yield f"other contents in its {one}", partial(_only, one, _other)
        yield f"its {one} left out", partial(_only, one, lambda inside: None)


def _noted(change: _Change, differs: list[bool], name: str, inside: bytes) -> bytes | None:
    new = change(name, inside)
    differs.append(new != inside)
    return new


def _only(one: str, change: Callable[[bytes], bytes | None], name: str, inside: bytes) -> bytes | None:
    return change(inside) if name == one else inside


def _changed(data: bytes, change: _Change) -> bytes | None:
    inside, pack = _unpacked(data)
    if len(inside) >= MAX_INSIDE:
        return None
    if inside[257:262] == b"ustar":
        return pack(_in_tar(inside, change))
    if inside.startswith(b"PK\x03\x04"):
        return pack(_in_zip(inside, change))
    return None if inside == data else pack(change("", inside) or b"")


def _unpacked(data: bytes) -> _Packed:
    """Return the content of a compressed file, at most `MAX_INSIDE` bytes, and the function to compress it."""
    if data.startswith(b"\x1f\x8b"):
        with gzip.open(io.BytesIO(data)) as file:
            return file.read(MAX_INSIDE), gzip.compress
    if data.startswith(b"BZh"):
        return bz2.BZ2Decompressor().decompress(data, MAX_INSIDE), bz2.compress
    if data.startswith(b"\xfd7zXZ"):
        return lzma.LZMADecompressor().decompress(data, MAX_INSIDE), lzma.compress
    return data, bytes


def _in_tar(data: bytes, change: _Change) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(data)) as old, tarfile.open(fileobj=made, mode="w") as new:
        for member in old:
            content = old.extractfile(member) if member.isfile() else None
            inside = change(member.name, content.read()) if content else b""
            if content and inside is not None:
                member.size = len(inside)
            if inside is not None:
                new.addfile(member, io.BytesIO(inside))
    return made.getvalue()


def _in_zip(data: bytes, change: _Change) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        if sum(entry.file_size for entry in old.infolist()) < MAX_INSIDE:
            for entry in old.infolist():
                inside = b"" if entry.is_dir() else change(entry.filename, old.read(entry))
                if inside is not None:
                    new.writestr(entry, inside)
    return made.getvalue()


def _other(content: bytes, known: Collection[str] = ()) -> bytes:
    try:
        return scrambled(content.decode(), known).encode()
    except UnicodeDecodeError:
        return f"{FOREIGN}\n".encode()
