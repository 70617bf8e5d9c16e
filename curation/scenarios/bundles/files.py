"""Bundles as files: one `<name>.json` each, in a folder or a zip archive."""

import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

from curation.imports.sources.open import open_path
from curation.imports.sources.rows import BadRow, SourceError, SourcePosition
from curation.scenarios.bundles.task_reader import TaskReader, task_roots
from curation.scenarios.models import Scenario, ScenarioQuerySet
from curation.web.text.storable import parse_inner

FOLDER = "scenarios"
# Characters that some file system does not allow in a name, or that would lead out of the folder.
_UNSAFE = re.compile(r'[/\\:*?"<>|%\x00-\x1f]|^\.|[. ]$')
MAX_NAME_BYTES = 200
IN_MEMORY = 8 * 1024 * 1024
CHUNK = 200
# Base64 and escapes make a document larger than its fixtures, but never larger than this.
MAX_FILE_BYTES = 4 * 1024 * 1024
# A fixed time, so that the same bundles make the same archive.
STAMP = (2020, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class BundleFile:
    """A document and its path; `refusal` says why it could not be read."""

    path: str
    document: object
    refusal: str = ""


def file_name(name: str) -> str:
    """The name of a scenario's file; different scenarios have different files."""
    safe = _UNSAFE.sub(lambda found: f"%{ord(found.group()):02X}", name)
    if len(safe.encode()) > MAX_NAME_BYTES:
        mark = hashlib.sha256(name.encode()).hexdigest()[:12]
        safe = f"{safe.encode()[: MAX_NAME_BYTES - 13].decode(errors='ignore')}~{mark}"
    return f"{safe}.json"


def files_of(rows: ScenarioQuerySet) -> Iterator[tuple[str, bytes]]:
    """(file name, JSON) of each scenario, read in chunks."""
    for row in rows.with_bundle().order_by("id").iterator(CHUNK):
        yield file_name(row.name), bundle_json(row)


def write_folder(files: Iterable[tuple[str, bytes]], folder: Path) -> int:
    """Write the files into `folder`, replacing files of the same names, and return their number."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, data in files:
        (folder / name).write_bytes(data)
        count += 1
    return count


def zip_archive(files: Iterable[tuple[str, bytes]]) -> IO[bytes]:
    """A zip archive with the folder `scenarios`, open for reading; a large one is a temporary file."""
    archive = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - the caller closes it
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files:
            packed.writestr(zipfile.ZipInfo(f"{FOLDER}/{name}", STAMP), data, zipfile.ZIP_DEFLATED)
    archive.seek(0)
    return archive


def bundle_json(row: Scenario) -> bytes:
    """Indented and in the bundle's own order, for people to read, edit and compare."""
    return f"{json.dumps(row.text.bundle, indent=2, ensure_ascii=False)}\n".encode()


def read_bundles(source: Path) -> Iterator[BundleFile]:
    """Every Harbor task in a folder or archive. If there is none, every bundle in a folder (`**/*.json`), a zip
    archive, JSON lines, or a JSON file with one bundle or a list.

    Raises `SourceError` for a source that cannot be read at all.
    """
    if not source.exists():
        raise SourceError(f"there is no file or folder {source}")
    with open_path(source) as opened:
        if opened.files is not None and task_roots(opened.files.names):
            for row in TaskReader(opened.files).rows(SourcePosition()):
                yield BundleFile("", None, row.reason) if isinstance(row, BadRow) else BundleFile(row.file, row.value)
            return
    if source.is_dir():
        for path in sorted(source.rglob("*.json")):
            yield _read(str(path.relative_to(source)), path.read_bytes())
    elif zipfile.is_zipfile(source):
        yield from _in_archive(source)
    elif source.suffix == ".jsonl":
        for number, line in enumerate(source.read_bytes().splitlines(), 1):
            if line.strip():
                yield _read(f"{source.name}:{number}", line)
    else:
        yield from _in_file(source)


def _in_archive(source: Path) -> Iterator[BundleFile]:
    with zipfile.ZipFile(source) as archive:
        for entry in archive.infolist():
            if entry.filename.endswith(".json"):
                if entry.file_size > MAX_FILE_BYTES:
                    yield BundleFile(entry.filename, None, f"larger than {MAX_FILE_BYTES // 1024} KiB")
                else:
                    yield _read(entry.filename, archive.read(entry))


def _in_file(source: Path) -> Iterator[BundleFile]:
    found = _read(source.name, source.read_bytes())
    if isinstance(found.document, list):
        for index, document in enumerate(found.document):
            yield BundleFile(f"{source.name}[{index}]", document)
    else:
        yield found


def _read(path: str, data: bytes) -> BundleFile:
    try:
        return BundleFile(path, parse_inner(data))
    except ValueError as error:
        return BundleFile(path, None, f"not JSON: {error}")
