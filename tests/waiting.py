"""Wait for what another process or thread does."""

import threading
import time
from collections.abc import Callable

from django.core.servers.basehttp import ThreadedWSGIServer


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Returns when the condition holds; fails the test after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it did not come to that within {seconds:.0f} s"
        time.sleep(0.05)


def until_answered() -> None:
    """Returns when the live server has answered everything that closed tabs have asked of it."""
    until(lambda: not any(map(_answers, threading.enumerate())))


def _answers(thread: threading.Thread) -> bool:
    """Whether the live server has this thread: those of other servers may wait for a connection that stays open."""
    return isinstance(getattr(getattr(thread, "_target", None), "__self__", None), ThreadedWSGIServer)
