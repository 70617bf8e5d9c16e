"""An open folder that others write to: its entries are reached by names, which are never followed out of it.

Between two looks a name can become a link, and a folder another one. An open folder stays the one that was opened.
"""

import io
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from curation.web.text.storable import printable

logger = logging.getLogger(__name__)
IS_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without waiting: a pipe would hold the worker.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Only a new file: an old one can have a second name elsewhere.
WRITE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class WatchedState:
    """The state of a file, which changes when somebody writes to it, and the number of its names."""

    inode: int
    size: int
    modified: int
    names: int = 1

    @classmethod
    def of(cls, descriptor: int) -> "WatchedState | None":
        """Return the state of an open file; None for anything else, such as a pipe."""
        return cls.read(os.fstat(descriptor))

    @classmethod
    def read(cls, found: os.stat_result) -> "WatchedState | None":
        regular = stat.S_ISREG(found.st_mode)
        return cls(found.st_ino, found.st_size, found.st_mtime_ns, found.st_nlink) if regular else None


@dataclass(frozen=True, slots=True)
class WatchedFolder:
    """`path` is for messages only."""

    descriptor: int
    path: Path

    @classmethod
    @contextmanager
    def at(cls, path: Path) -> Iterator["WatchedFolder"]:
        yield from cls._opened(os.open(path, IS_FOLDER), path)

    @contextmanager
    def enter(self, name: str, *, create: bool = False) -> Iterator["WatchedFolder"]:
        """Open a folder in this one. Raises `OSError` if it is a link or no folder."""
        if create:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.descriptor)
        yield from self._opened(os.open(name, IS_FOLDER, dir_fd=self.descriptor), self.path / name)

    @classmethod
    def _opened(cls, descriptor: int, path: Path) -> Iterator["WatchedFolder"]:
        try:
            yield cls(descriptor, path)
        finally:
            os.close(descriptor)

    @property
    def name(self) -> str:
        return self.path.name

    def inner(self, only: str = "") -> Iterator["WatchedFolder"]:
        """Yield the folders in it, open; those whose names are not text, and those that cannot be opened, are left."""
        for name, found in self._entries():
            if not stat.S_ISDIR(found.st_mode) or printable(name) != name or name != (only or name):
                continue
            try:
                descriptor = os.open(name, IS_FOLDER, dir_fd=self.descriptor)
            except OSError as error:
                logger.error("WATCH_FOLDER: %s cannot be opened: %s", self.path_of(name), error.strerror)
                continue
            yield from self._opened(descriptor, self.path / name)

    def path_of(self, name: str) -> str:
        return printable(str(self.path / name))

    def raw_path_of(self, name: str) -> bytes:
        return os.fsencode(self.path / name)

    def files(self) -> list[tuple[str, WatchedState]]:
        """The files in it by name. Links, pipes and devices are left: they could lead to anything of this machine."""
        return [(name, state) for name, found in self._entries() if (state := WatchedState.read(found))]

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO | None]:
        """Open a file; None if it is gone, or is no file any more."""
        try:
            descriptor = os.open(name, READ, dir_fd=self.descriptor)
        except OSError as error:
            logger.warning("WATCH_FOLDER: %s is left: %s", self.path_of(name), error.strerror)
            yield None
            return
        if WatchedState.of(descriptor) is None:
            os.close(descriptor)
            yield None
            return
        with os.fdopen(descriptor, "rb") as file:
            yield file

    def move(self, name: str, target: "WatchedFolder") -> str:
        """Move the file that has this name now under a free name; return that name."""
        stem, suffix = Path(name).stem, Path(name).suffix
        free, number = name, 1
        while target._has(free):
            number += 1
            free = f"{stem}-{number}{suffix}"
        os.rename(name, free, src_dir_fd=self.descriptor, dst_dir_fd=target.descriptor)
        return free

    def inode_of(self, name: str) -> int:
        return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False).st_ino

    def write(self, name: str, text: str) -> None:
        """Write a new file in place of one with that name, if there is one."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)
        with os.fdopen(os.open(name, WRITE_NEW, 0o644, dir_fd=self.descriptor), "w", errors="replace") as file:
            file.write(text)

    def _has(self, name: str) -> bool:
        try:
            return self.inode_of(name) >= 0
        except FileNotFoundError:
            return False

    def _entries(self) -> list[tuple[str, os.stat_result]]:
        """Its entries by name, without hidden names. Names that vanish meanwhile are omitted, an error is logged."""
        found = []
        try:
            for name in sorted(os.listdir(self.descriptor)):  # noqa: PTH208 - by the open folder
                if not name.startswith("."):
                    with suppress(FileNotFoundError):
                        found.append((name, os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)))
        except OSError as error:
            logger.error("WATCH_FOLDER: %s cannot be read: %s", printable(str(self.path)), error.strerror)
        return found


class AsSeen(io.RawIOBase):
    """An open file up to the size that it was seen with: a program that writes to it cannot hold the worker."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self.size = file, size

    def read(self, size: int = -1) -> bytes:
        left = max(0, self.size - self._file.tell())
        return self._file.read(left if size < 0 else min(size, left))

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        is_from_end = whence == io.SEEK_END
        return self._file.seek(offset + self.size if is_from_end else offset, io.SEEK_SET if is_from_end else whence)
