"""Django's SQLite backend with a queue of writers.

SQLite lets one process write at a time; the others sleep and retry, up to 100 ms apart. With eight writers the database
is mostly idle and waiting times are random. Here a writer first takes a lock of its process, then a kernel lock on a
file beside the database; a release wakes the next writer at once. Other programs, which do not take the lock, wait as
SQLite does.

A writer waits at most `OPTIONS["timeout"]` seconds, for the lock and for SQLite together, also if the writer before it
is stopped or slow. Then it gets an `OperationalError` that begins with SQLite's own words, "database is locked".
"""

import contextlib
import fcntl
import os
import sqlite3
import threading
import time
from typing import Any, cast

from django.db import OperationalError
from django.db.backends.sqlite3 import base

WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")
# By the path of the file that is locked. The threads of a process wait here, where a wait with a limit costs nothing;
# for the file one of them waits.
_turns: dict[str, threading.Lock] = {}
# The lock may be that of a thread which the child does not have.
os.register_at_fork(after_in_child=_turns.clear)


class _Wait:
    """A thread that waits for the lock of an open file: the kernel knows no limit for such a wait.

    If the writer leaves first, the thread stays in the queue, and unlocks the file at once when it gets the lock.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self._state = threading.Condition()
        self._wanted, self._ended, self._closed = True, False, False
        threading.Thread(target=self._take, name="sqlite-turn", daemon=True).start()

    def _take(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        with self._state:
            self._ended = True
            if self._closed:
                os.close(self._file)
            elif not self._wanted:
                fcntl.flock(self._file, fcntl.LOCK_UN)
            self._state.notify_all()

    def takes_within(self, seconds: float) -> bool:
        """Return whether the file is locked for the caller within `seconds`."""
        with self._state:
            self._wanted = self._state.wait_for(lambda: self._ended, seconds)
            return self._wanted

    def rejoin(self) -> bool:
        """Want the lock again. Return False if the thread has ended meanwhile."""
        with self._state:
            self._wanted = not self._ended
            return self._wanted

    def close(self) -> None:
        with self._state:
            self._closed = True
            if self._ended:
                os.close(self._file)


class Cursor(base.SQLiteCursorWrapper):
    """A write outside a transaction takes its own turn in the queue."""

    def execute(self, query: str, params: Any = None) -> Any:
        wrapper = cast(Connection, self.connection).wrapper
        if self.connection.in_transaction or not query.lstrip()[:7].upper().startswith(WRITES):
            return super().execute(query, params)
        wrapper.take_turn()
        try:
            return super().execute(query, params)
        finally:
            wrapper.end_turn()


class Connection(sqlite3.Connection):
    wrapper: "DatabaseWrapper"


class DatabaseWrapper(base.DatabaseWrapper):
    _lock: int | None = None
    _turn: threading.Lock
    _has_turn = False
    _wait: _Wait | None = None
    _seconds = 0.0
    _busy_limited = False

    def get_connection_params(self) -> dict[str, Any]:
        return {**super().get_connection_params(), "factory": Connection}

    def get_new_connection(self, conn_params: dict[str, Any]) -> Connection:
        if not self.is_in_memory_db():
            # Created here, because SQLite would make it readable for everyone; its other files get the same mode. A
            # file that exists must not be opened: closing it would drop the locks of this process's connections.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(conn_params["database"], os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        connection: Connection = super().get_new_connection(conn_params)
        connection.wrapper = self
        if not self.is_in_memory_db():
            path = f"{conn_params['database']}-lock"
            self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._turn = _turns.setdefault(path, threading.Lock())
            self._seconds = float(conn_params["timeout"])
        return connection

    def create_cursor(self, name: str | None = None) -> base.SQLiteCursorWrapper:
        """A transaction has its turn already, so its cursors are Django's own."""
        kind = base.SQLiteCursorWrapper if self.connection.in_transaction else Cursor
        cursor: base.SQLiteCursorWrapper = self.connection.cursor(factory=kind)
        return cursor

    def take_turn(self) -> None:
        if self._lock is None or self._has_turn:
            return
        begun = time.monotonic()
        if not self._turn.acquire(timeout=self._seconds):
            raise self._locked("another thread")
        try:
            self._lock_file(self._lock, begun)
        except BaseException:
            self._turn.release()
            raise
        self._has_turn = True
        if (waited := time.monotonic() - begun) > 1:
            self._limit_busy(self._seconds - waited)

    def _lock_file(self, file: int, begun: float) -> None:
        if self._wait is None or not self._wait.rejoin():
            self._wait = None
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            self._wait = _Wait(file)
        if not self._wait.takes_within(max(0.0, begun + self._seconds - time.monotonic())):
            raise self._locked("another process")
        self._wait = None

    def _locked(self, by: str) -> OperationalError:
        return OperationalError(f"database is locked: {by} has written for more than {self._seconds:g} s")

    def end_turn(self) -> None:
        if self._lock is None or not self._has_turn:
            return
        self._has_turn = False
        fcntl.flock(self._lock, fcntl.LOCK_UN)
        self._turn.release()
        if self._busy_limited:
            self._limit_busy(self._seconds)

    def _limit_busy(self, seconds: float) -> None:
        """Limit how long SQLite waits for programs outside the queue."""
        self.connection.execute(f"PRAGMA busy_timeout = {max(0, round(1000 * seconds))}")
        self._busy_limited = seconds < self._seconds

    def _start_transaction_under_autocommit(self) -> None:
        self.take_turn()
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # a hook that the stubs leave out
        except BaseException:
            self.end_turn()
            raise

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]  # a hook that the stubs leave out
        self.end_turn()

    def _rollback(self) -> None:
        super()._rollback()  # type: ignore[misc]  # a hook that the stubs leave out
        self.end_turn()

    def _close(self) -> None:
        super()._close()  # type: ignore[misc]  # a hook that the stubs leave out
        self._busy_limited = False  # a limit of the connection that is closed
        self.end_turn()
        if self._wait is not None:
            self._wait.close()
        elif self._lock is not None:
            os.close(self._lock)
        self._wait = self._lock = None
