"""Files of one folder, of an archive or a disk, that are read together."""

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import orjson

from curation.imports.layouts.clean import clean, clean_text
from curation.imports.layouts.session import Json
from curation.imports.sources.rows import BadRow, Fault, RowRefused, SourcePosition, SourceRow
from curation.imports.sources.text_rows import BOM, UTF_16, RawRow, decode, json_faults, read_loosely
from curation.web.text.storable import parse_inner

MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Files:
    """Names are relative to `root`, which is empty or ends with `/`. `main` is the one that others belong to, if there
    is one, and is read from `after` on. `became` has the layout of each file. `open` gets the whole name, and no
    more than `longest` bytes of a file are read. `unreadable` has the reason for each line that is no JSON object,
    `faults` has the faults of the files' JSON.
    """

    root: str
    names: Sequence[str]
    open: Callable[[str], BinaryIO]
    longest: int = 64 * MB
    main: str = ""
    after: SourcePosition = SourcePosition()
    became: dict[str, str] = field(default_factory=dict)
    replaced: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def bytes(self, name: str, becomes: str) -> bytes | None:
        """Return the content, or None if there is no such file. Raises `RowRefused` for one that is too long."""
        if name not in self.names:
            return None
        with self.open(self.root + name) as file:
            content = file.read(self.longest + 1)
        if len(content) > self.longest:
            raise RowRefused(f"{self.root}{name} is longer than {self.longest // MB} MB")
        self.became[name] = becomes
        return content

    def text(self, name: str, becomes: str) -> str:
        """Return the text, or an empty one if there is no such file. Bytes that are not UTF-8 are replaced."""
        return clean_text((self.bytes(name, becomes) or b"").removeprefix(BOM).decode(errors="replace"))

    def json(self, name: str, becomes: str) -> Any:
        """Return the value, or None if there is no such file. Raises `RowRefused` for one that is not JSON."""
        content = self.bytes(name, becomes)
        if content is None:
            return None
        try:
            value, faults = _parsed(content)
        except ValueError as error:
            raise RowRefused(f"{self.root}{name} is not JSON: {error}") from None
        self.faults.extend(faults)
        return value

    def object(self, name: str, becomes: str) -> Json | None:
        """Return the object, or None if there is no such file. Raises `RowRefused` for another value.

        Characters that no database stores are replaced, and the places in `replaced`.
        """
        value = self.json(name, becomes)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise RowRefused(f"{self.root}{name} is not an object")
        cleaned, replaced = clean(value, "")
        self.replaced.extend(replaced)
        found: Json = cleaned
        return found


def _parsed(content: bytes) -> tuple[Any, Sequence[Fault]]:
    """Return the value in JSON, read loosely where that is needed, and the faults of the text."""
    content = content.removeprefix(BOM)
    if content.startswith(UTF_16):
        raise ValueError("it is UTF-16. Save it as UTF-8")
    try:
        value = parse_inner(content)
        return value, json_faults(content, value)
    except orjson.JSONDecodeError:
        try:
            return read_loosely(content), json_faults(content, None)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None


def beside(name: str, path: str) -> str:
    """Return the name of a file by its path relative to the folder of another."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def decoded_rows(raws: Iterable[RawRow]) -> Iterator[SourceRow | BadRow]:
    return (decode(raw) for raw in raws if raw.text or raw.refusal)


def values_of(raws: Iterable[RawRow], name: str = "", files: Files | None = None) -> list[Json]:
    """Return the values of lines, and tell `files` of the other lines and of the faults of the lines' JSON."""
    found = list(decoded_rows(raws))
    if files is not None:
        files.unreadable.extend(f"{name}:{row.offset + 1}: {row.reason}" for row in found if isinstance(row, BadRow))
        files.faults.extend(fault for row in found if isinstance(row, SourceRow) for fault in row.faults)
    return [row.value for row in found if isinstance(row, SourceRow)]


def all_values(raws: Iterable[RawRow], name: str, files: Files) -> list[Json]:
    """Return the values of a file that is one document. Raises `RowRefused` for one that is too long."""
    kept: list[RawRow] = []
    size = 0
    for raw in raws:
        size += len(raw.text)
        if size > files.longest:
            raise RowRefused(f"{files.root}{name} is one document of more than {files.longest // MB} MB")
        kept.append(raw)
    return values_of(kept, name, files)
