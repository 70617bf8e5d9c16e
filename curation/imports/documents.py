"""Read the files of a source as rows, each with what a layout found in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from curation.imports.layouts.folder import Document, Folder
from curation.imports.layouts.groups import Kind
from curation.imports.sources.files import SourceFiles
from curation.imports.sources.rows import BadRow, Position, Reader, Row

# A position is the number of a group of files, times this, and the number of a document in it.
_INSIDE = 1 << 32


@dataclass(frozen=True, slots=True)
class DocumentRow(Row):
    """A document. A row of data in a file has its value, any other document none."""

    document: Document = Document("")


class DocumentReader:
    """A `Reader` of the documents in a source's files, with one of them in memory at a time."""

    def __init__(self, files: SourceFiles, *, longest: int, rows: Reader | None = None) -> None:
        """`rows` reads the source as plain rows, if it is one file of them."""
        self.format = files.format
        self._rows = None if files.is_archive else rows
        self._folder = Folder(files.names, files.open, longest)

    def has_agent_files(self) -> bool:
        """Return whether files belong together as an agent's do, by their names alone."""
        return any(group.kind is not Kind.FILE or ".traj" in group.main for group in self._folder.groups)

    def rows(self, start: Position) -> Iterator[Row | BadRow]:
        first, done = divmod(start.byte, _INSIDE)
        offset = start.offset
        for number, group in enumerate(self._folder.groups[first:], first):
            for index, document in enumerate(self._folder.read(group)):
                if number == first and index < done:
                    continue
                after = Position(offset + 1, number * _INSIDE + index + 1)
                if document.refused:
                    yield BadRow(offset, f"{document.name}: {document.refused}", after)
                else:
                    value = document.row.value if document.row else {}
                    yield DocumentRow(offset, value, after, document.name, document)
                offset += 1

    def window(self, start: int, length: int) -> Iterator[Row | BadRow]:
        return islice(self.rows(Position()), start, start + length)

    def count(self) -> int:
        """Return the number of rows in a file, or of groups of files in an archive, which are not read for it."""
        return self._rows.count() if self._rows else sum(group.kind is not Kind.JOB for group in self._folder.groups)
