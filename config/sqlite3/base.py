"""Django's SQLite backend with a queue of writers.

SQLite lets one process write at a time; the others sleep and retry, up to 100 ms apart. With eight writers the database
is mostly idle and waiting times are random. Here a writer first takes a kernel lock on a file beside the database; its
release wakes the next writer at once. Other programs, which do not take the lock, wait as SQLite does.
"""

import contextlib
import fcntl
import os
import sqlite3
from typing import Any, cast

from django.db.backends.sqlite3 import base

WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


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
        return connection

    def create_cursor(self, name: str | None = None) -> Cursor:
        cursor: Cursor = self.connection.cursor(factory=Cursor)
        return cursor

    def take_turn(self) -> None:
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def end_turn(self) -> None:
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

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
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
