"""Bundles as files: one `<name>.json` each, in a folder or a zip archive."""

import hashlib
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

from curation.scenarios.models import Scenario, ScenarioQuerySet

FOLDER = "scenarios"
# What some file system does not take in a name, or what would lead out of the folder.
_UNSAFE = re.compile(r'[/\\:*?"<>|%\x00-\x1f]|^\.|[. ]$')
LONGEST = 200
IN_MEMORY = 8 * 1024 * 1024
CHUNK = 200
# The same bundles give the same archive.
_STAMP = (2020, 1, 1, 0, 0, 0)


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
