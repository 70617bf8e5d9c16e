"""A ZIP archive of JSON files with one record each."""

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from curation.imports.sources.limits import UnpackLimit
from curation.imports.sources.rows import BadRow, Position, Row, SourceError
from curation.imports.sources.text_rows import Raw, decode

# Python reads the list of files into memory, at several times its length: this much lists 300,000 files.
LONGEST_DIRECTORY = 32 * 1024 * 1024
END_OF_DIRECTORY, LONGEST_COMMENT = b"PK\x05\x06", 65_535 + 22
# macOS adds this folder to archives.
_MACOS = "__MACOSX/"


class ZipReader:
    """`longest` bounds one unpacked file, `most` all of them, in bytes. Raises `SourceError` for a damaged archive."""

    format = "ZIP of JSON files"

    def __init__(self, file: BinaryIO, *, longest: int, most: int) -> None:
        packed = file.seek(0, os.SEEK_END)
        _refuse_long_directory(file, packed)
        try:
            self._archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise SourceError(f"The ZIP archive is damaged: {error}.") from None
        self._files = [
            entry
            for entry in self._archive.infolist()
            if entry.filename.lower().endswith(".json") and not entry.filename.startswith(_MACOS)
        ]
        if not self._files:
            raise SourceError("The ZIP archive contains no .json file.")
        UnpackLimit(packed, most=most).add(sum(entry.file_size for entry in self._files))
        self._longest = longest

    def rows(self, start: Position) -> Iterator[Row | BadRow]:
        return self.window(start.offset, len(self._files))

    def window(self, start: int, length: int) -> Iterator[Row | BadRow]:
        for offset in range(start, min(start + length, len(self._files))):
            yield self._read(offset)

    def count(self) -> int:
        return len(self._files)

    def _read(self, offset: int) -> Row | BadRow:
        entry, after = self._files[offset], Position(offset + 1)
        # The size in the header can be wrong; read no more than our limit.
        try:
            with self._archive.open(entry) as file:
                text = file.read(self._longest + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            return BadRow(offset, f"{entry.filename}: damaged: {error}", after)
        except (RuntimeError, NotImplementedError) as error:  # encrypted, or packed in a way that Python does not know
            return BadRow(offset, f"{entry.filename}: {error}", after)
        if len(text) > self._longest:
            return BadRow(offset, f"{entry.filename}: longer than {self._longest // 1024 // 1024} MB", after)
        found = decode(Raw(offset, text, after))
        return found if isinstance(found, Row) else BadRow(offset, f"{entry.filename}: {found.reason}", after)


def _refuse_long_directory(file: BinaryIO, size: int) -> None:
    """Raise `SourceError` for more files than can be listed. Its length is in the record at the end of an archive."""
    file.seek(max(0, size - LONGEST_COMMENT))
    _, found, record = file.read().rpartition(END_OF_DIRECTORY)
    if found and len(record) >= 12 and struct.unpack_from("<L", record, 8)[0] > LONGEST_DIRECTORY:
        raise SourceError(
            "The ZIP archive lists too many files (300,000 are about the limit). Send JSON lines instead."
        )
