"""The embedded broker: Kombu's filesystem transport with atomic writes.

Kombu opens a message's file under its final name and then writes it; a worker that polls every 50 ms can read the empty
file and crash. Here a file is written under a temporary name and renamed, which POSIX does atomically.
"""

import contextlib
import fcntl
import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.json import dumps, loads

logger = logging.getLogger(__name__)
LEFT_SECONDS = 3600.0


class Channel(filesystem.Channel):
    """A folder of messages. Workers claim a message by renaming its file: of two workers only one succeeds."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for folder in {self.data_folder_out, self.processed_folder, self.control_folder}:
            _delete_leftovers(Path(folder))

    def _put(self, queue: str, payload: Any, **_: Any) -> None:  # type: ignore[override]  # Kombu declares it twice
        name = f"{round(time.monotonic() * 1000):014d}_{uuid.uuid4()}.{queue}.msg"
        _write_atomically(Path(self.data_folder_out) / name, dumps(payload))

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        folder, taken = Path(self.data_folder_in), Path(self.processed_folder)
        for name in sorted(file.name for file in folder.iterdir()):
            if name.partition(".")[2] != f"{queue}.msg":
                continue
            try:
                (folder / name).rename(taken / name)
            except FileNotFoundError:
                continue  # another worker claimed it
            text = (taken / name).read_text()
            (taken / name).unlink()
            try:
                return loads(text)
            except ValueError:
                logger.warning("a message that is not JSON was dropped: %s", name)
        raise Empty

    def _queue_bind(self, exchange: str, routing_key: str | None, pattern: str | None, queue: str) -> None:
        file = Path(self.control_folder) / f"{exchange}.exchange"
        entry = filesystem.exchange_queue_t(routing_key or "", pattern or "", queue or "")
        with _locked(file.parent):
            table = self.get_table(exchange)
            if entry not in table:
                _write_atomically(file, dumps([entry, *table]))


class Transport(filesystem.Transport):
    Channel = Channel


def register() -> None:
    """Replace Kombu's own transport."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"


def _write_atomically(path: Path, text: str) -> None:
    temporary = path.with_name(f".{uuid.uuid4().hex}")
    try:
        temporary.write_text(text)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _delete_leftovers(folder: Path) -> None:
    """Delete files that a killed process was writing or reading. Nothing takes that long."""
    for file in folder.glob("*") if folder.name == "processed" else folder.glob(".*"):
        with contextlib.suppress(FileNotFoundError):  # another process deletes them too
            if file.name != ".lock" and file.stat().st_mtime < time.time() - LEFT_SECONDS:
                file.unlink()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
