"""Read the files of a source as rows, each with the findings of a layout."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from django.conf import settings

from curation.imports.layouts.account import SPECIAL
from curation.imports.layouts.assistants.chatgpt import is_export
from curation.imports.layouts.folder import Document, DocumentFolder, is_database, is_history
from curation.imports.layouts.groups import OF_TRIALS, FileGroup, GroupKind
from curation.imports.layouts.session import Json
from curation.imports.sources.csv_rows import DELIMITERS
from curation.imports.sources.open import OpenedSource, SourceFiles, open_file
from curation.imports.sources.rows import BadRow, RowRefused, SourceError, SourcePosition, SourceReader, SourceRow

# A position is the number of a group of files, times this, and the number of a document in it.
_INSIDE = 1 << 32
# Files that are opened by what is in them: tables, logs of Inspect, archives and packed files.
_OPENED = (*(".parquet", ".arrow", ".eval", ".zip", ".tar", ".tgz", ".gz", ".zst"), *(".tar.gz", ".tar.zst"))
# Files that are named where none of a source is read.
_SHOWN_FILES = 3
_READ = (".json", ".jsonl", ".ndjson", ".traj", ".har", ".af", *_OPENED)


@dataclass(slots=True)
class DocumentRow(SourceRow):
    """A document. A row of data in a file has its value, any other document none. `place` begins a reason to refuse it:
    the name of the document, where a source has several files."""

    document: Document = Document("")
    place: str = ""


class DocumentReader:
    """A `SourceReader` of the documents in a source's files, with one of them in memory at a time."""

    def __init__(
        self,
        files: SourceFiles,
        *,
        rows: SourceReader | None = None,
        is_row: Callable[[Json], bool] = lambda value: True,
        is_inside: bool = False,
    ) -> None:
        """`rows` reads the source as plain rows, if it is one file of them, and `is_row` is that of `DocumentFolder`.
        Archives that are inside an archive may have no further ones."""
        self.format = files.format
        self._files, self._is_row, self._is_inside = files, is_row, is_inside
        self._rows = None if files.is_archive else rows
        self._is_alone = len(files.names) == 1 and not files.left_out and not files.names[0].endswith(_OPENED)
        self._folder = DocumentFolder(files.names, files.open, settings.MAX_LINE_BYTES, is_row)
        for name in files.left_out:
            self._folder.note(name, SPECIAL)

    @property
    def is_readable(self) -> bool:
        """Whether any file may have rows, by the names alone."""
        names = (group.main.lower() for group in self._folder.groups if group.kind is GroupKind.FILE)
        return (
            any(name.endswith(_READ) or is_history(name) or is_database(name) for name in names)
            or any(group.kind is not GroupKind.FILE for group in self._folder.groups)
            or not (self._files.is_archive or self._rows)  # a text that is no rows
        )

    def has_agent_files(self) -> bool:
        """Return whether files belong together as an agent's do, by their names alone."""
        return any(
            group.kind is not GroupKind.FILE
            or ".traj" in group.main
            or is_database(group.main)
            or is_export(group.main)
            for group in self._folder.groups
        )

    def rows(self, start: SourcePosition) -> Iterator[SourceRow | BadRow]:
        """Yield the documents. What became of files is told with the next document, or with the last one."""
        if self._is_alone:
            yield from self._rows_from(start)
            return
        last: SourceRow | BadRow | None = None
        for row in self._rows_from(start):
            if last is not None:
                yield last
            last = replace(row, read=self._folder.told())
        told = self._folder.told()
        if last is not None:
            yield replace(last, read={**last.read, **told})
        elif told and start.offset == 0:
            reason = "; ".join(f"{name}: {word}" for name, word in islice(told.items(), _SHOWN_FILES))
            yield BadRow(0, f"no file is read: {reason}", SourcePosition(1, start.byte), read=told)

    def _rows_from(self, start: SourcePosition) -> Iterator[SourceRow | BadRow]:
        first, done = divmod(start.byte, _INSIDE)
        offset = start.offset
        for number, group in enumerate(self._folder.groups[first:], first):
            skipped = done if number == first else 0
            for index, document in enumerate(self._documents(group, skipped), skipped):
                after = SourcePosition(offset + 1, number * _INSIDE + index + 1)
                if document.refused and not document.value:
                    yield BadRow(offset, f"{document.name}: {document.refused}", after, is_cut=document.is_cut)
                else:
                    value = document.row.value if document.row else {}
                    place = f"{document.name}: " if document.refused or not self._is_alone else ""
                    faults = document.row.faults if document.row else ()
                    yield DocumentRow(offset, value, after, document.name, document, place, faults=faults)
                offset += 1
        end = len(self._folder.groups) * _INSIDE
        if self._files.damage and start.byte <= end:
            is_cut = not self._files.is_archive  # the damage of an archive is that files have one name
            yield BadRow(offset, self._files.damage, SourcePosition(offset + 1, end + 1), is_cut=is_cut)

    def window(self, start: int, length: int) -> Iterator[SourceRow | BadRow]:
        return islice(self.rows(SourcePosition()), start, start + length)

    def count(self) -> int:
        """Return the number of rows in a file, or of groups of files in an archive, which are not read for it."""
        return self._rows.count() if self._rows else sum(one.kind not in OF_TRIALS for one in self._folder.groups)

    def _documents(self, group: FileGroup, done: int) -> Iterator[Document]:
        """Yield the documents of a group but for the first ones, which are done."""
        name = group.root + group.main
        if self._rows is not None and self._rows.format in DELIMITERS.values():
            yield from islice(self._folder.rows(name, self._rows.rows(SourcePosition())), done, None)
        elif group.kind is GroupKind.FILE and self._files.is_archive and name.lower().endswith(_OPENED):
            try:
                with self._files.open(name) as file, open_file(file, group.main) as source:
                    yield from self._inside(name, source, done)
            except (SourceError, RowRefused) as refused:
                yield Document(name, refused=str(refused))
        else:
            yield from islice(self._folder.read(group), done, None)

    def _inside(self, name: str, source: OpenedSource, done: int) -> Iterator[Document]:
        if source.files is None and source.rows is not None:
            self._folder.note(name, "rows")
            yield from self._folder.rows(name, source.rows.rows(SourcePosition(done)))
        elif source.files is not None:
            if source.files.is_archive and self._is_inside:
                raise SourceError("an archive in an archive in an archive is not read")
            self._folder.note(name, source.files.format)
            inner = DocumentReader(source.files, rows=source.rows, is_row=self._is_row, is_inside=True)
            documents = (document for inside in inner._folder.groups for document in inner._documents(inside, 0))
            for document in islice(documents, done, None):
                yield replace(document, name=_placed(name, source.files, document.name))
            if source.files.damage:
                yield Document(name, refused=source.files.damage, is_cut=not source.files.is_archive)
            if source.files.is_archive:
                for file, word in inner._folder.told().items():
                    self._folder.note(f"{name}/{file}", word)


def _placed(name: str, files: SourceFiles, inner: str) -> str:
    """Return the name of a document in a file: of a packed file with its own name, `rows.jsonl.gz:3`."""
    return f"{name}/{inner}" if files.is_archive else name + inner.removeprefix(files.names[0])


def rows_of(source: OpenedSource) -> SourceReader:
    """Return the reader of a source's rows, or of the rows in its files. Raises `SourceError` for one without them."""
    if source.rows is None and source.files is not None:
        reader = DocumentReader(source.files)
        if reader.is_readable:
            return reader
    return source.reader
