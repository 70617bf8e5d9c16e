"""Open a source: detect its format by its first bytes and return a reader of its rows.

Uploads and fetched files are in storage, paths on the worker; `hf://` and `s3://` Parquet is read in place.
"""

import hashlib
import io
import os
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson
from django.conf import settings
from django.core.files.storage import default_storage

from curation.imports.sources.allowed_sources import SourceLocation, duckdb_secret
from curation.imports.sources.archive import (
    MACOS,
    ArchivePart,
    UnpackLimit,
    ZipReader,
    open_zip,
    unpack_entry,
    zstd,
)
from curation.imports.sources.array import split_array
from curation.imports.sources.csv_rows import DELIMITERS, csv_splitter, delimiter_of
from curation.imports.sources.rows import RowRefused, SourceError, SourceReader
from curation.imports.sources.text_rows import BOM, UTF_16, TextReader, split_lines
from curation.web.files import missing_file
from curation.web.text.storable import has_many_values

CHUNK = 1024 * 1024
# File types that people send by mistake, by their first bytes.
FOREIGN = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"%PDF": "a PDF document",
    b"RIFF": "a picture, sound or film",
    b"II*\x00": "a TIFF image",
    b"MM\x00*": "a TIFF image",
    b"\x93NUMPY": "a NumPy array",
    b"\x7fELF": "a program",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"<!doctype html": "a web page",
    b"<html": "a web page",
    b"<?xml": "XML",
}
# Files that are no rows, but a layout reads.
LAYOUTS = {
    re.compile(rb"\s*(?:# aider chat started at|TO LLM \d{4}-)"): "a history of Aider",
    re.compile(rb"SQLite format 3\0"): "an SQLite database",
}
SHOWN_BEGINNING = 40
ARROW_STREAM, ARROW_FILE = b"\xff\xff\xff\xff", b"ARROW1"
GZIP_MAGIC, ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
PACKED = re.compile(r"\.(gz|zst|tgz)$")
GZIP = 31  # zlib's window size for a stream with gzip header and checksum


ONE_FILE = "one file"
MOST_FILES = 300_000
# Long lines are read in fewer parts than with 8 KB.
_BUFFER = 256 * 1024
_TAR, _TAR_AT = b"ustar", 257


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """`open` gets one of the names and returns a seekable file, `mode` returns its permissions. Links and special files
    are `left_out`. `damage` says what of an archive or a packed file is not read, if anything."""

    format: str
    names: Sequence[str]
    open: Callable[[str], BinaryIO]
    mode: Callable[[str], int] = lambda name: 0o644
    left_out: Sequence[str] = ()
    damage: str = ""

    @property
    def is_archive(self) -> bool:
        return self.format != ONE_FILE


def one_file(name: str, file: BinaryIO, damage: str = "") -> SourceFiles:
    def opened(_: str) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(ArchivePart(file), _BUFFER))

    return SourceFiles(ONE_FILE, [name], opened, damage=damage)


def zip_files(file: BinaryIO, *, longest: int, most: int) -> SourceFiles:
    """The files of a ZIP archive of at most `most` unpacked bytes; one of more than `longest` is unpacked to a disk.
    Raises `SourceError`."""
    archive = open_zip(file)
    found = [one for one in archive.infolist() if not one.is_dir() and not one.filename.startswith(MACOS)]
    links = [one.filename for one in found if stat.S_ISLNK(one.external_attr >> 16)]
    entries = {one.filename: one for one in found if one.filename not in links}
    UnpackLimit(file.seek(0, os.SEEK_END), most=most).add(sum(one.file_size for one in entries.values()))

    def opened(name: str) -> BinaryIO:
        entry = entries[name]
        try:
            # The limit of all files is checked above, by the sizes that no entry exceeds.
            unpacked = tempfile.SpooledTemporaryFile(max_size=longest, dir=settings.FILE_UPLOAD_TEMP_DIR)  # noqa: SIM115
            unpack_entry(archive, file, entry, unpacked, entry.file_size + 1)
            unpacked.seek(0)
            return cast(BinaryIO, unpacked)
        except (zipfile.BadZipFile, zlib.error, zstd.ZstdError, EOFError, OSError) as error:
            raise RowRefused(f"{name}: damaged: {error}") from None
        except (RuntimeError, NotImplementedError) as error:  # encrypted, or packed in a way that Python does not know
            raise RowRefused(f"{name}: {error}") from None

    return SourceFiles(
        "ZIP archive",
        list(entries),
        opened,
        lambda name: entries[name].external_attr >> 16,
        links,
        _several(one.filename for one in found),
    )


def _several(names: Iterable[str]) -> str:
    """Return the files of an archive that are not read because a later one has their name, or an empty text."""
    later = sorted(name for name, number in Counter(names).items() if number > 1)
    named = ", ".join(later[:5])
    return f"the archive has several files of one name, of which only the last is read: {named}"[:500] if later else ""


def is_tar(file: BinaryIO) -> bool:
    file.seek(_TAR_AT)
    return file.read(len(_TAR)) == _TAR


def tar_files(file: BinaryIO) -> SourceFiles:
    """The files of a tar archive that is unpacked already. Raises `SourceError`, also for sparse files, whose holes
    make them longer than the archive, beyond the limits of what is packed."""
    limit = UnpackLimit(file.seek(0, os.SEEK_END))
    file.seek(0)
    entries: dict[str, tarfile.TarInfo] = {}
    left_out: list[str] = []
    names: list[str] = []
    try:
        archive = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115 - open as long as the source
        for number, one in enumerate(archive):
            if number >= MOST_FILES:
                raise SourceError(f"The tar archive has more than {MOST_FILES:,} files. Send JSON lines instead.")
            if one.isreg():
                limit.add(one.size)
                names.append(one.name.removeprefix("./"))
                entries[names[-1]] = one
            elif not one.isdir():
                left_out.append(one.name.removeprefix("./"))
    except tarfile.TarError as error:
        raise SourceError(f"The tar archive is damaged: {error}.") from None
    return SourceFiles(
        "tar archive",
        list(entries),
        lambda name: cast(BinaryIO, archive.extractfile(entries[name])),
        lambda name: entries[name].mode,
        left_out,
        _several(names),
    )


def folder_files(folder: Path) -> tuple[SourceFiles, str]:
    """The files below a folder, and the SHA-256 of their names and contents. Links are not followed."""
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if not path.is_dir()}
    paths = {name: path for name, path in found.items() if path.is_file() and not path.is_symlink()}
    if len(paths) > MOST_FILES:
        raise SourceError(f"The folder has more than {MOST_FILES:,} files. Send JSON lines instead.")
    digest = hashlib.sha256()
    for name, path in paths.items():
        digest.update(name.encode() + b"\0")
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    opened, mode = lambda name: paths[name].open("rb"), lambda name: paths[name].stat().st_mode
    return SourceFiles("folder", list(paths), opened, mode, sorted(found.keys() - paths)), digest.hexdigest()


@dataclass(frozen=True, slots=True)
class OpenedSource:
    """`digest` is the SHA-256 of the source's bytes, in hex. Tables such as Parquet have no `files`, folders and tar
    archives no `rows`, and neither has a ZIP archive without JSON: `no_rows` is what it is."""

    digest: str
    rows: SourceReader | None
    files: SourceFiles | None = None
    no_rows: str = "It has files, not rows: import it, or send JSON lines or a ZIP of JSON."

    @property
    def reader(self) -> SourceReader:
        """The reader of rows. Raises `SourceError` for a source without them."""
        if self.rows is None:
            raise SourceError(self.no_rows)
        return self.rows


@contextmanager
def open_stored(key: str) -> Iterator[OpenedSource]:
    """Open an upload or a fetched file. Raises `SourceError` if it cannot be read at all."""
    try:
        stored = default_storage.open(key, "rb")
    except FileNotFoundError:
        raise SourceError(missing_file(key)) from None
    with stored as file:
        path = getattr(file, "name", "")
        local = Path(path) if path and Path(path).is_absolute() else None
        with _open(cast(BinaryIO, file), local, key.rpartition("/")[2]) as opened:
            yield opened


@contextmanager
def open_file(file: BinaryIO, name: str) -> Iterator[OpenedSource]:
    """Open a file of an archive or a folder. Raises `SourceError` if it cannot be read at all."""
    with _open(file, None, name) as opened:
        yield opened


@contextmanager
def open_path(path: Path) -> Iterator[OpenedSource]:
    """Open a file or folder on this machine. The caller has checked that it may be read
    (`allowed_sources.locate`)."""
    if path.is_dir():
        files, digest = folder_files(path)
        yield OpenedSource(digest, None, files)
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise SourceError(f"{path.name} cannot be opened: {error.strerror}") from None
    with file, _open(file, path, path.name) as opened:
        yield opened


def open_in_place(located: SourceLocation) -> AbstractContextManager[OpenedSource]:
    """Open a source that is not on the web."""
    return open_path(located.path) if located.path is not None else open_remote(located.remote)


@contextmanager
def open_remote(address: str) -> Iterator[OpenedSource]:
    """Open `hf://` or `s3://` Parquet, read in place."""
    # DuckDB takes time and memory, which no page needs.
    from curation.imports.sources.parquet import ParquetReader, connect_remote

    with closing(connect_remote(duckdb_secret(address))) as connection:
        reader = ParquetReader(connection, address, settings.MAX_LINE_BYTES)
        yield OpenedSource(reader.listing_digest(), reader)


@contextmanager
def _open(file: BinaryIO, local: Path | None, name: str) -> Iterator[OpenedSource]:
    digest = hashlib.sha256()
    while chunk := file.read(CHUNK):
        digest.update(chunk)
    file.seek(0)
    head = file.read(4096)
    if head.startswith(b"PAR1"):
        from curation.imports.sources.parquet import ParquetReader, connect_local

        with _local_copy(file, local) as path, closing(connect_local(path)) as connection:
            yield OpenedSource(digest.hexdigest(), ParquetReader(connection, str(path), settings.MAX_LINE_BYTES))
    elif head.startswith((ARROW_STREAM, ARROW_FILE)):
        from curation.imports.sources.arrow import ArrowReader

        with _local_copy(file, local) as path:
            yield OpenedSource(digest.hexdigest(), ArrowReader(path, settings.MAX_LINE_BYTES))
    elif head.startswith((GZIP_MAGIC, ZSTD_MAGIC)):
        unpack = _unpack if head.startswith(GZIP_MAGIC) else _unpack_zstd
        with tempfile.TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR) as unpacked:
            damage = unpack(file, unpacked)
            yield _opened(unpacked, digest.hexdigest(), PACKED.sub("", name), damage)
    elif head.startswith(b"PK\x03\x04"):
        limits = {"longest": settings.MAX_LINE_BYTES, "most": settings.MAX_UNPACKED_BYTES}
        files = zip_files(file, **limits)
        reader, no_rows = _zip_reader(file, **limits)
        yield OpenedSource(digest.hexdigest(), reader, files, no_rows)
    else:
        yield _opened(file, digest.hexdigest(), name, "")


def _zip_reader(file: BinaryIO, *, longest: int, most: int) -> tuple[ZipReader | None, str]:
    """Return the reader of a ZIP archive's rows, or why it has none."""
    try:
        return ZipReader(file, longest=longest, most=most), ""
    except SourceError as error:
        return None, str(error)


def _opened(file: BinaryIO, digest: str, name: str, damage: str) -> OpenedSource:
    if is_tar(file):
        if damage:
            raise SourceError(f"The archive is damaged: {damage}.")
        return OpenedSource(digest, None, tar_files(file))
    file.seek(0)
    head = file.read(4096)
    for beginning, kind in LAYOUTS.items():
        if beginning.match(head.removeprefix(BOM)):
            return OpenedSource(
                digest, None, one_file(name, file, damage), f"It is {kind}, not rows: import it as trajectories."
            )
    return OpenedSource(digest, _text_reader(file, name, damage), one_file(name, file, damage))


def _text_reader(file: BinaryIO, name: str, damage: str) -> TextReader:
    file.seek(0)
    head = file.read(65536)
    if not head and not damage:
        raise SourceError("The file is empty.")
    _refuse_foreign(head)
    common: dict[str, Any] = {"longest": settings.MAX_LINE_BYTES, "damage": damage}
    if delimiter := delimiter_of(head, name):
        return TextReader(file=file, split=csv_splitter(file, delimiter), format=DELIMITERS[delimiter], **common)
    _refuse_other_text(head)
    begins = head.removeprefix(BOM).lstrip()
    split, format = (split_array, "JSON array") if begins.startswith(b"[") else (split_lines, "JSON lines")
    if begins.startswith(b"{") and not damage and (one := _one_record(file, head)):
        file, format = BytesIO(one), "one JSON object"
    return TextReader(file=file, split=split, format=format, **common)


def _one_record(file: BinaryIO, head: bytes) -> bytes:
    """A file with a single object over several lines, as one line; empty for anything else."""
    try:
        orjson.loads(head.partition(b"\n")[0].removeprefix(BOM))
        return b""
    except orjson.JSONDecodeError:
        file.seek(0)
        text = file.read(settings.MAX_LINE_BYTES + 1)
    try:
        if len(text) > settings.MAX_LINE_BYTES or has_many_values(text):
            return b""
        orjson.loads(text.removeprefix(BOM))
        return text.removeprefix(BOM).replace(b"\n", b" ")  # none of them is in a string
    except orjson.JSONDecodeError:
        return b""


def _refuse_foreign(head: bytes) -> None:
    """Refuse known foreign formats by name."""
    if head.startswith(UTF_16):
        raise SourceError("The file is UTF-16. Save it as UTF-8.")
    if head.startswith(b"PK\x03\x04"):
        raise SourceError("The gzip file contains a ZIP archive. Send the archive itself.")
    if head.startswith((ZSTD_MAGIC, b"BZh", b"\xfd7zXZ")):
        raise SourceError("The file is compressed with something other than gzip or Zstandard. Unpack it or use gzip.")
    for magic, name in FOREIGN.items():
        if head.startswith(magic) or head.removeprefix(BOM).lstrip().lower().startswith(magic):
            raise SourceError(f"The file is {name}, which has no rows. Send JSON lines, a JSON array, CSV or Parquet.")
    if head.startswith(b"\x1f\x8b") or head.startswith(b"PAR1"):
        raise SourceError("The gzip file contains another compressed file. Send JSON lines or Parquet.")


def _refuse_other_text(head: bytes) -> None:
    """Refuse a file without a line that could be JSON; others fail line by line."""
    lines = head.removeprefix(BOM).splitlines()
    if not any(line.lstrip()[:1] in (b"{", b"[") for line in lines) and any(line.strip() for line in lines):
        if b"\x00" in head:
            raise SourceError(
                "The file is binary, of an unknown format. Send JSON lines, a JSON array, CSV or Parquet."
            )
        beginning = head.removeprefix(BOM).lstrip()[:SHOWN_BEGINNING].decode(errors="replace").splitlines()[0]
        raise SourceError(
            f"The file is text, but not JSON: it begins with {beginning!r}. Send JSON lines, a JSON array, CSV or "
            "Parquet."
        )


def _unpack_zstd(file: BinaryIO, into: BinaryIO) -> str:
    """Unpack as much as possible; return why the rest cannot be unpacked, or ''."""
    limit = UnpackLimit(packed=file.seek(0, os.SEEK_END))
    file.seek(0)
    try:
        with zstd.open(file) as stream:
            while text := stream.read(CHUNK):
                limit.add(len(text))
                into.write(text)
    except (zstd.ZstdError, EOFError) as error:
        return f"the zstd file is damaged from here on: {error}"
    return ""


def _unpack(file: BinaryIO, into: BinaryIO) -> str:
    """Unpack as much as possible; return why the rest cannot be unpacked, or ''."""
    limit = UnpackLimit(packed=file.seek(0, os.SEEK_END))
    file.seek(0)
    stream = zlib.decompressobj(GZIP)
    while packed := file.read(CHUNK):
        while packed:
            if stream.eof:  # several gzip files in a row are one
                stream = zlib.decompressobj(GZIP)
            try:
                text = stream.decompress(packed, CHUNK)
            except zlib.error as error:
                return f"the gzip file is damaged from here on: {error}"
            limit.add(len(text))
            into.write(text)
            packed = stream.unused_data.lstrip(b"\x00") if stream.eof else stream.unconsumed_tail
    return "" if stream.eof else "the gzip file is cut off here"


@contextmanager
def _local_copy(file: BinaryIO, local: Path | None) -> Iterator[Path]:
    """A path without glob characters for DuckDB: the file's own, else a temporary copy."""
    if local is not None and not set("*?[") & set(str(local)):
        yield local.resolve()
        return
    with tempfile.NamedTemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR, suffix=".parquet") as copy:
        file.seek(0)
        shutil.copyfileobj(file, copy, CHUNK)
        copy.flush()
        yield Path(copy.name)
