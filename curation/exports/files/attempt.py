"""The files of one attempt at an export, streamed to storage in a folder that no download can name.

An attempt is published by the database rows that point to its files, in one transaction; until then, and after a
killed worker for ever, its folder is debris that the next attempt sweeps away.
"""

import gzip
import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

# What waits is hashed and written while the processor's cache still holds it. From about 128 KiB on the allocator gives
# freed blocks back to the system and asks for them anew, a page fault a row: that took a fifth of the time of writing.
_WAITING = 64 * 1024


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A finished file; `bytes` and `sha256` are of what is stored and downloaded."""

    name: str
    stored_as: str
    format: str
    split: str
    rows: int
    bytes: int
    sha256: str


class _Sink:
    """A file in storage that counts and hashes what it is given."""

    def __init__(self, key: str) -> None:
        # Saving makes the folders where storage has folders; opening for writing then streams.
        self.key = default_storage.save(key, ContentFile(b""))
        self._file = default_storage.open(self.key, "wb")
        self._digest = hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes) -> int:
        self._digest.update(data)
        self.bytes += len(data)
        self._file.write(data)
        return len(data)

    def flush(self) -> None:
        """`GzipFile` asks for it; storage gets its bytes at the end at the latest."""

    def close(self) -> str:
        self._file.close()
        return self._digest.hexdigest()


@dataclass(slots=True)
class _Part:
    """A file being written; rows wait in `waiting` until there is enough to write."""

    name: str
    format: str
    split: str
    sink: _Sink
    packed: gzip.GzipFile | None
    rows: int = 0
    waiting: list[bytes] = field(default_factory=list)
    waiting_bytes: int = 0

    def add(self, line: bytes) -> None:
        self.rows += 1
        self.waiting.append(line)
        self.waiting_bytes += len(line)
        if self.waiting_bytes > _WAITING:
            self.flush()

    def flush(self) -> None:
        """Storage has been given all lines when it returns."""
        (self.packed or self.sink).write(b"".join(self.waiting))
        self.waiting.clear()
        self.waiting_bytes = 0

    def close(self) -> WrittenFile:
        self.flush()
        if self.packed is not None:
            self.packed.close()
        digest = self.sink.close()
        return WrittenFile(self.name, self.sink.key, self.format, self.split, self.rows, self.sink.bytes, digest)


class Artefact:
    """A context manager: leaving it by an exception deletes what was written."""

    def __init__(self, export_id: int) -> None:
        self._home = f"exports/{export_id}"
        self._folder = f"{self._home}/{uuid.uuid4().hex}"
        self._parts: dict[str, _Part] = {}
        self._finished: list[WrittenFile] = []

    def __enter__(self) -> "Artefact":
        self._sweep()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            return
        for part in self._parts.values():
            part.sink.close()
        for key in [part.sink.key for part in self._parts.values()] + [done.stored_as for done in self._finished]:
            default_storage.delete(key)

    def add(self, name: str, line: bytes, *, format: str = "", split: str = "", packed: bool = False) -> None:
        """Appends one line, its newline included, to the file of that name."""
        part = self._parts.get(name) or self._open(name, format, split, packed)
        part.add(line)

    def touch(self, name: str) -> None:
        """A file that shall be there even with no line in it."""
        if name not in self._parts:
            self._open(name, "", "", False)

    def flush(self) -> None:
        for part in self._parts.values():
            part.flush()

    def whole(self, name: str, content: bytes) -> WrittenFile:
        """A small file at once."""
        part = self._open(name, "", "", False)
        part.sink.write(content)
        return self._close(part)

    def close(self) -> Sequence[WrittenFile]:
        """Ends the files that are open; all finished ones by name."""
        for part in list(self._parts.values()):
            self._close(part)
        return sorted(self._finished, key=lambda done: done.name)

    def _open(self, name: str, format: str, split: str, packed: bool) -> _Part:
        sink = _Sink(f"{self._folder}/{name}")
        # No name and no time in the header: the same rows must give the same bytes.
        packing = gzip.GzipFile("", "wb", 6, sink, mtime=0) if packed else None
        part = self._parts[name] = _Part(name, format, split, sink, packing)
        return part

    def _close(self, part: _Part) -> WrittenFile:
        del self._parts[part.name]
        done = part.close()
        self._finished.append(done)
        return done

    def _sweep(self) -> None:
        """Deletes what earlier attempts left. Nothing of them was published, or this attempt would not have begun."""
        try:
            attempts, _ = default_storage.listdir(self._home)
        except FileNotFoundError:
            return
        for attempt in attempts:
            _, files = default_storage.listdir(f"{self._home}/{attempt}")
            for name in files:
                default_storage.delete(f"{self._home}/{attempt}/{name}")
            default_storage.delete(f"{self._home}/{attempt}")
