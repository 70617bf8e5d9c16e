"""The files of a source: those in an archive or a folder, or the one file that it is."""

import hashlib
import io
import os
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from django.conf import settings

from curation.imports.sources.archive import MACOS, ArchivePart, UnpackLimit, refuse_long_directory, unpack_entry, zstd
from curation.imports.sources.rows import RowRefused, SourceError

ONE_FILE = "one file"
MOST_FILES = 300_000
# Long lines are read in fewer parts than with 8 KB.
_BUFFER = 256 * 1024
_TAR, _TAR_AT = b"ustar", 257


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """`open` gets one of the names and returns a seekable file, `mode` returns its permissions. Links and special files
    are `left_out`. `damage` says why a file that is packed ends early, if it does."""

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
    packed = file.seek(0, os.SEEK_END)
    refuse_long_directory(file, packed)
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise SourceError(f"The ZIP archive is damaged: {error}.") from None
    found = [one for one in archive.infolist() if not one.is_dir() and not one.filename.startswith(MACOS)]
    links = [one.filename for one in found if stat.S_ISLNK(one.external_attr >> 16)]
    entries = {one.filename: one for one in found if one.filename not in links}
    UnpackLimit(packed, most=most).add(sum(one.file_size for one in entries.values()))

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

    return SourceFiles("ZIP archive", list(entries), opened, lambda name: entries[name].external_attr >> 16, links)


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
    try:
        archive = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115 - open as long as the source
        for number, one in enumerate(archive):
            if number >= MOST_FILES:
                raise SourceError(f"The tar archive has more than {MOST_FILES:,} files. Send JSON lines instead.")
            if one.isreg():
                limit.add(one.size)
                entries[one.name.removeprefix("./")] = one
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
