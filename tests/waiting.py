"""Wait for what another process or thread does."""

import time
from collections.abc import Callable


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Returns when the condition holds; fails the test after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it did not come to that within {seconds:.0f} s"
        time.sleep(0.05)
