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

import orjson

from curation.imports.sources.rows import SourceError
from curation.scenarios.models import Scenario, ScenarioQuerySet

FOLDER = "scenarios"
# What some file system does not take in a name, or what would lead out of the folder.
_UNSAFE = re.compile(r'[/\\:*?"<>|%\x00-\x1f]|^\.|[. ]$')
LONGEST = 200
IN_MEMORY = 8 * 1024 * 1024
CHUNK = 200
# Base64 and escapes make a document larger than its fixtures; nothing that is a bundle is larger than this.
LARGEST = 4 * 1024 * 1024
# The same bundles give the same archive.
_STAMP = (2020, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class BundleFile:
    """A document and where it stands; `refusal` says why it could not be read."""

    place: str
    document: object
    refusal: str = ""


def file_name(name: str) -> str:
    """A file for a scenario of this name; different names have different files."""
    safe = _UNSAFE.sub(lambda found: f"%{ord(found.group()):02X}", name)
    if len(safe.encode()) > LONGEST:
        mark = hashlib.sha256(name.encode()).hexdigest()[:12]
        safe = f"{safe.encode()[: LONGEST - 13].decode(errors='ignore')}~{mark}"
    return f"{safe}.json"


def files_of(rows: ScenarioQuerySet) -> Iterator[tuple[str, bytes]]:
    """(file name, JSON) of each scenario, read in chunks."""
    for row in rows.with_bundle().order_by("id").iterator(CHUNK):
        yield file_name(row.name), printed(row)


def write_folder(files: Iterable[tuple[str, bytes]], folder: Path) -> int:
    """Writes the files below `folder`, over files of these names; how many."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, data in files:
        (folder / name).write_bytes(data)
        count += 1
    return count


def zip_archive(files: Iterable[tuple[str, bytes]]) -> IO[bytes]:
    """An archive with the folder `scenarios`, open for reading at its start; a large one lies on disk."""
    archive = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - the caller closes it
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files:
            packed.writestr(zipfile.ZipInfo(f"{FOLDER}/{name}", _STAMP), data, zipfile.ZIP_DEFLATED)
    archive.seek(0)
    return archive


def printed(row: Scenario) -> bytes:
    """Indented, in the bundle's own order: such files are read, edited and compared by people."""
    return f"{json.dumps(row.text.bundle, indent=2, ensure_ascii=False)}\n".encode()


def read_bundles(source: Path) -> Iterator[BundleFile]:
    """Every bundle below a folder (`**/*.json`), in a zip archive, in JSON lines, or in one JSON file (one or a list).

    Raises `SourceError` for a source that cannot be read at all.
    """
    if source.is_dir():
        for path in sorted(source.rglob("*.json")):
            yield _read(str(path.relative_to(source)), path.read_bytes())
    elif not source.is_file():
        raise SourceError(f"there is no file or folder {source}")
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
                if entry.file_size > LARGEST:
                    yield BundleFile(entry.filename, None, f"larger than {LARGEST // 1024} KiB, which no bundle is")
                else:
                    yield _read(entry.filename, archive.read(entry))


def _in_file(source: Path) -> Iterator[BundleFile]:
    found = _read(source.name, source.read_bytes())
    if isinstance(found.document, list):
        for index, document in enumerate(found.document):
            yield BundleFile(f"{source.name}[{index}]", document)
    else:
        yield found


def _read(place: str, data: bytes) -> BundleFile:
    try:
        return BundleFile(place, orjson.loads(data))
    except orjson.JSONDecodeError as error:
        return BundleFile(place, None, f"not JSON: {error}")
