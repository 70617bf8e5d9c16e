"""The files of one attempt at an export, streamed to a storage folder that no download can name.

An attempt is published by the database rows that point to its files, in one transaction. The next attempt deletes the
folder of one that was never published, because its worker was killed.
"""

import contextlib
import hashlib
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from gzip import GzipFile
from types import TracebackType
from typing import IO

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.dispatch import receiver

from curation.exports.formats import FORMATS
from curation.exports.formats.row import Columns
from curation.exports.models import Export, ExportFile
from curation.exports.recipes.recipe import Recipe
from curation.projects.removal.erase import delete_folder, pre_erase

# Buffers of this size stay in the processor's cache. From about 128 KiB on, the allocator returns freed blocks to the
# system and requests them again, a page fault per row: that took a fifth of the writing time.
_BUFFER = 64 * 1024


class _StoredFile:
    """A file in storage that counts and hashes the bytes written to it."""

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
    # The lines of a Parquet file: its columns are known when all rows are.
    lines: IO[bytes] | None
    rows: int = 0
    longest: int = 0
    buffer: list[bytes] = field(default_factory=list)
    buffered: int = 0

    def add(self, line: bytes) -> None:
        self.rows += 1
        self.longest = max(self.longest, len(line))
        self.buffer.append(line)
        self.buffered += len(line)
        if self.buffered > _BUFFER:
            self.flush()

    def flush(self) -> None:
        (self.lines or self.gzip or self.stored).write(b"".join(self.buffer))
        self.buffer.clear()
        self.buffered = 0

    def close(self, columns: Columns) -> ExportFile:
        self.flush()
        if self.gzip is not None:
            self.gzip.close()
        if self.lines is not None:
            from curation.exports.files.parquet import write_parquet

            write_parquet(self.lines, self.stored, columns, self.longest)
            self.lines.close()
        digest, stored = self.stored.close(), self.stored
        return ExportFile(
            name=self.name,
            stored_as=stored.key,
            format=self.format,
            split=self.split,
            rows=self.rows,
            bytes=stored.bytes,
            sha256=digest,
        )


class AttemptFiles:
    """A context manager that deletes its files when an exception leaves it. `metadata` are the columns that each row
    has beside those of its format."""

    def __init__(self, export_id: int, recipe: Recipe, metadata: Columns) -> None:
        self._recipe, self._metadata = recipe, metadata
        self._names: dict[tuple[str, str], str] = {}
        self._not_plain: set[str] = set()
        self._with_images: set[str] = set()
        self._images: set[str] = set()
        self._export_id, self._export_folder = export_id, _folder_of(export_id)
        self._folder = f"{self._export_folder}/{uuid.uuid4().hex}"
        self._open_files: dict[str, _OpenFile] = {}
        self._finished: list[ExportFile] = []

    def __enter__(self) -> "AttemptFiles":
        delete_folder(self._export_folder)  # of earlier attempts: had one been published, this one would not have begun
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            return
        for file in self._open_files.values():
            with contextlib.suppress(OSError):  # the buffer does not fit on a full disk
                file.stored.close()
            if file.lines is not None:
                file.lines.close()
        keys = [file.stored.key for file in self._open_files.values()]
        for key in keys + [file.stored_as for file in self._finished]:
            default_storage.delete(key)
        with contextlib.suppress(OSError):  # a folder where there are folders, nothing in a bucket
            default_storage.delete(self._folder)

    def add_row(self, format: str, split: str, line: bytes, *, plain: bool, images: bool = False) -> None:
        name = self._names.get((format, split))
        if name is None:
            name = self._names[format, split] = f"{format}.{split}.{self._recipe.storage(format)}"
            self._open(name, format, split)
        if not plain:
            self._not_plain.add(format)
        if images:
            self._with_images.add(format)
        self._open_files[name].add(line)

    def add_image(self, name: str, content: bytes) -> None:
        """Write an image that rows name, once."""
        if name not in self._images:
            self._images.add(name)
            self.write(name, content)

    def add(self, name: str, line: bytes) -> None:
        """Append one line with its newline to a list beside the data files."""
        self._open_files[name].add(line)

    def columns(self, format: str) -> Columns:
        """Return the columns of a format's rows so far; they are the same in all of its files."""
        form = FORMATS[format]
        columns = form.columns if format in self._not_plain or form.plain_columns is None else form.plain_columns
        images: Columns = {"images": ["image"]} if format in self._with_images else {}
        return {**columns, **images, **self._metadata}

    def touch(self, name: str) -> None:
        """Create a file that exists even without lines."""
        if name not in self._open_files:
            self._open(name)

    def flush(self) -> None:
        for file in self._open_files.values():
            file.flush()

    def write(self, name: str, content: bytes) -> ExportFile:
        file = self._open(name)
        file.stored.write(content)
        return self._close(file)

    def close(self) -> Sequence[ExportFile]:
        """Close the open files and return all finished ones by name."""
        for file in list(self._open_files.values()):
            self._close(file)
        return sorted(self._finished, key=lambda file: file.name)

    def _open(self, name: str, format: str = "", split: str = "") -> _OpenFile:
        stored = _StoredFile(f"{self._folder}/{name}")
        # Without name and time in the header the same rows give the same bytes.
        packed = GzipFile("", "wb", 6, stored, mtime=0) if name.endswith(".gz") else None
        # It is closed with the file.
        lines = tempfile.TemporaryFile() if name.endswith(".parquet") else None  # noqa: SIM115
        file = self._open_files[name] = _OpenFile(name, format, split, stored, packed, lines)
        return file

    def _close(self, file: _OpenFile) -> ExportFile:
        written = file.close(self.columns(file.format) if file.lines else {})
        written.export_id = self._export_id
        del self._open_files[file.name]
        self._finished.append(written)
        return written


@receiver(pre_erase, sender=Export)
def delete_files(ids: Sequence[int], **kwargs: object) -> None:
    for export_id in ids:
        delete_folder(_folder_of(export_id))


def _folder_of(export_id: int) -> str:
    return f"exports/{export_id}"
