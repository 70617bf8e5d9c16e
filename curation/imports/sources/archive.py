"""A ZIP archive of JSON files with one record each."""

import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from curation.imports.sources.rows import BadRow, Position, Row, SourceError
from curation.imports.sources.text_rows import Raw, decode

# macOS adds this folder to archives.
_MACOS = "__MACOSX/"


class ZipReader:
    """`longest` bounds one unpacked file, `most` all of them, in bytes. Raises `SourceError` for a damaged archive."""

    format = "ZIP of JSON files"

    def __init__(self, file: BinaryIO, *, longest: int, most: int) -> None:
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
        if sum(entry.file_size for entry in self._files) > most:
            raise SourceError(f"Unpacked, the archive has more than {most // 1024 // 1024} MB.")
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
