"""Model calls of a process that was forked from one that had made some, as `winnow demo` forks its workers."""

import os
import signal

from curation.runs.engine.event_loop import run_in_loop


async def answer() -> int:
    return 7


def test_a_forked_process_has_a_loop_of_its_own() -> None:
    assert run_in_loop(answer()) == 7
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(5)  # ends it with the signal: nothing works on the loop of its parent
        os._exit(run_in_loop(answer()))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
