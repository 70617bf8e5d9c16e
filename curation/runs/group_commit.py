"""Group commit: the database work of many coroutines, as much of it in one transaction as is waiting."""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import DatabaseError, connection, transaction

logger = logging.getLogger(__name__)
T = TypeVar("T")
MOST_TOGETHER = 64
_Waiting = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class GroupCommit:
    """`await commit(work)` runs `work` in the one database thread and returns once its transaction has committed.

    Each work has its own savepoint: one that raises is undone alone. If the commit itself fails, all of them raise.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="group-commit", daemon=True)
        self._thread.start()

    async def __call__(self, work: Callable[[], T]) -> T:
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.put((work, future))
        # A cancelled waiter must not leave its write unseen: it ends when the write has.
        return await asyncio.shield(future)

    async def close(self) -> None:
        self._waiting.put(None)
        await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        try:
            while batch := self._next_batch():
                self._commit(batch)
        finally:
            connection.close()

    def _next_batch(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        entry = self._waiting.get()
        while entry is not None:
            batch.append(entry)
            if len(batch) == MOST_TOGETHER:
                break
            try:
                entry = self._waiting.get_nowait()
            except queue.Empty:
                break
        else:
            if batch:
                self._waiting.put(None)
        return batch

    def _commit(self, batch: list[_Waiting]) -> None:
        ended: list[tuple[asyncio.Future[Any], Any, BaseException | None]] = []
        try:
            with transaction.atomic():
                for work, future in batch:
                    try:
                        with transaction.atomic():
                            ended.append((future, work(), None))
                    except Exception as error:  # part of the run loop: handed to the coroutine that asked
                        ended.append((future, None, error))
        except DatabaseError as error:
            logger.warning("a group of %s writes was not committed: %s", len(batch), error)
            connection.close()
            ended = [(future, None, error) for _, future in batch]
        self._loop.call_soon_threadsafe(_settle, ended)


def _settle(ended: list[tuple["asyncio.Future[Any]", Any, BaseException | None]]) -> None:
    for future, result, error in ended:
        if future.cancelled():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
            future.exception()  # a waiter that was cancelled meanwhile will not read it
