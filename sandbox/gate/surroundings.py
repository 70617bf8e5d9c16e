"""An agent's ways to decide the verdict beside its results: full folders, and links under the names that the checker
writes. Nothing else is done, so the checker must fail."""

import shlex
from collections.abc import Iterator, Sequence

from sandbox.agent.action import Ending
from sandbox.gate.play import Rooms
from sandbox.gate.report import Check
from sandbox.protocol import HOME, TEMPORARY

FULL = f"for d in {HOME} {' '.join(TEMPORARY)}; do cat /dev/zero > $d/zq-fill; done 2>/dev/null"
TARGET = f"{HOME}/zq-one"


def surroundings(rooms: Rooms, ending: Ending, written: Sequence[str]) -> Iterator[Check]:
    """Each in a fresh sandbox. `written` are the paths that the checker wrote after the reference."""
    yield _must_fail(rooms, "full disk", FULL, ending, "every folder is full")
    if written:
        planted = "\n".join(f"ln -s {TARGET} {shlex.quote(path)} 2>/dev/null" for path in written)
        yield _must_fail(rooms, "planted links", planted, ending, "the files that it writes are links to one file")


def _must_fail(rooms: Rooms, name: str, script: str, ending: Ending, says: str) -> Check:
    played = rooms.play(before=[script], ending=ending)
    reason = f"the checker passes when nothing was done and {says}. Let it fail if it cannot write."
    return Check(name, not played.passed, reason if played.passed else "", tuple(played.lines))
