"""The files of one attempt at an export, streamed to a storage folder that no download can name.

An attempt is published by the database rows that point to its files, in one transaction. The next attempt deletes the
folder of one that was never published, because its worker was killed.
"""

import contextlib
import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from gzip import GzipFile
from types import TracebackType

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from curation.exports.models import Export
from curation.projects.removal.erase import cleans_up
from curation.projects.removal.files import delete_folder

# Buffers of this size stay in the processor's cache. From about 128 KiB on, the allocator returns freed blocks to the
# system and requests them again, a page fault per row: that took a fifth of the writing time.
_BUFFER = 64 * 1024


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A finished file. `bytes` and `sha256` are of the file as stored and downloaded."""

    name: str
    stored_as: str
    format: str
    split: str
    rows: int
    bytes: int
    sha256: str


class _StoredFile:
    """A file in storage that counts and hashes what is written to it."""

    def __init__(self, key: str) -> None:
        # Saving creates the folders, and opening for writing then streams.
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
        """Do nothing: `GzipFile` calls this, and closing the file writes everything."""

    def close(self) -> str:
        self._file.close()
        return self._digest.hexdigest()


@dataclass(slots=True)
class _OpenFile:
    """A file being written. Rows are buffered."""

    name: str
    format: str
    split: str
    stored: _StoredFile
    gzip: GzipFile | None
    rows: int = 0
    buffer: list[bytes] = field(default_factory=list)
    buffered: int = 0

    def add(self, line: bytes) -> None:
        self.rows += 1
        self.buffer.append(line)
        self.buffered += len(line)
        if self.buffered > _BUFFER:
            self.flush()

    def flush(self) -> None:
        (self.gzip or self.stored).write(b"".join(self.buffer))
        self.buffer.clear()
        self.buffered = 0

    def close(self) -> WrittenFile:
        self.flush()
        if self.gzip is not None:
            self.gzip.close()
        digest, stored = self.stored.close(), self.stored
        return WrittenFile(self.name, stored.key, self.format, self.split, self.rows, stored.bytes, digest)


class AttemptFiles:
    """A context manager that deletes what was written when an exception leaves it."""

    def __init__(self, export_id: int) -> None:
        self._export_folder = _folder_of(export_id)
        self._folder = f"{self._export_folder}/{uuid.uuid4().hex}"
        self._open_files: dict[str, _OpenFile] = {}
        self._finished: list[WrittenFile] = []

    def __enter__(self) -> "AttemptFiles":
        self._delete_earlier()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            return
        for file in self._open_files.values():
            with contextlib.suppress(OSError):  # what is still buffered does not fit on a full disk
                file.stored.close()
        keys = [file.stored.key for file in self._open_files.values()]
        for key in keys + [file.stored_as for file in self._finished]:
            default_storage.delete(key)
        with contextlib.suppress(OSError):  # a folder where there are folders, nothing in a bucket
            default_storage.delete(self._folder)

    def add(self, name: str, line: bytes, *, format: str = "", split: str = "", gzip: bool = False) -> None:
        """Append one line with its newline to the file of that name."""
        file = self._open_files.get(name) or self._open(name, format, split, gzip)
        file.add(line)

    def touch(self, name: str) -> None:
        """Create a file that exists even without lines."""
        if name not in self._open_files:
            self._open(name)

    def flush(self) -> None:
        for file in self._open_files.values():
            file.flush()

    def write(self, name: str, content: bytes) -> WrittenFile:
        """Write a small file at once."""
        file = self._open(name)
        file.stored.write(content)
        return self._close(file)

    def close(self) -> Sequence[WrittenFile]:
        """Close the open files and return all finished ones by name."""
        for file in list(self._open_files.values()):
            self._close(file)
        return sorted(self._finished, key=lambda file: file.name)

    def _open(self, name: str, format: str = "", split: str = "", gzip: bool = False) -> _OpenFile:
        stored = _StoredFile(f"{self._folder}/{name}")
        # Without name and time in the header the same rows give the same bytes.
        packed = GzipFile("", "wb", 6, stored, mtime=0) if gzip else None
        file = self._open_files[name] = _OpenFile(name, format, split, stored, packed)
        return file

    def _close(self, file: _OpenFile) -> WrittenFile:
        del self._open_files[file.name]
        written = file.close()
        self._finished.append(written)
        return written

    def _delete_earlier(self) -> None:
        """Delete the files of earlier attempts. None was published, or this attempt would not have begun."""
        delete_folder(self._export_folder)


@cleans_up(Export)
def delete_files(export_ids: Sequence[int]) -> None:
    for export_id in export_ids:
        delete_folder(_folder_of(export_id))


def _folder_of(export_id: int) -> str:
    return f"exports/{export_id}"
