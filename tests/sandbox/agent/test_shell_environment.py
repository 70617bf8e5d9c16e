import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sandbox.agent.action import Ending
from sandbox.agent.shell_environment import ShellEnvironment, ShellTask
from sandbox.errors import SandboxFailed, SetupRefused
from sandbox.protocol import SandboxSession, Setup
from tests.sandbox.fake import FakeBackend, FakeSession, ran

TASK = ShellTask(Setup(motd="Work is announced by: todo\n", banner="Winnow 1.0"), "test -e greeting.txt", "exit")


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as found:
        yield found


def environment(threads: ThreadPoolExecutor, open_session: Callable[[Setup], SandboxSession]) -> ShellEnvironment:
    return ShellEnvironment(TASK, open_session, threads, command_seconds=20)


def test_an_episode_step_by_step(threads: ThreadPoolExecutor) -> None:
    rooms = FakeBackend({"ls": "NOTICE\n", "oops": ran("sh: oops: not found\n", 127)})

    async def play() -> None:
        room = environment(threads, rooms.session)
        seen = await room.reset()
        assert seen.text == "Winnow 1.0\nWork is announced by: todo\nagent@host:~$ "
        step = await room.step("ls")
        assert (step.observation.text, step.reward, step.done) == ("NOTICE\nagent@host:~$ ", 0.0, False)
        assert (await room.step("cd /srv")).observation.prompt == "agent@host:/srv$ "
        assert (await room.step("oops")).observation.exit_code == 127
        last = await room.step("exit")
        assert (last.reward, last.done, last.check and last.check.passed) == (1.0, True, True)
        await room.close()
        await room.close()

    asyncio.run(play())
    assert rooms.sessions[0].closed
    assert rooms.sessions[0].checker == TASK.checker


@pytest.mark.parametrize(
    ("action", "passes", "reward"), [("exit", True, 1.0), ("exit", False, 0.0), ("panic no work", True, 0.0)]
)
def test_only_the_right_terminal_and_state_are_rewarded(
    threads: ThreadPoolExecutor, action: str, passes: bool, reward: float
) -> None:
    rooms = FakeBackend(passes=lambda session: passes)

    async def play() -> float | None:
        room = environment(threads, rooms.session)
        await room.reset()
        step = await room.step(action)
        await room.close()
        return step.reward

    assert asyncio.run(play()) == reward


def test_it_may_end_without_a_terminal(threads: ThreadPoolExecutor) -> None:
    rooms = FakeBackend()

    async def play() -> None:
        room = environment(threads, rooms.session)
        await room.reset()
        assert (await room.end(None)).reward == 0.0
        await room.close()

    asyncio.run(play())
    assert rooms.sessions[0].terminal == ""


@pytest.mark.parametrize("error", [SandboxFailed("no room"), SetupRefused("outside")])
def test_the_first_step_raises_what_went_wrong_with_the_opening(threads: ThreadPoolExecutor, error: Exception) -> None:
    rooms = FakeBackend(opening=[error])

    async def play() -> None:
        room = environment(threads, rooms.session)
        await room.reset()
        with pytest.raises(type(error), match=str(error)):
            await room.step("ls")
        await room.close()

    asyncio.run(play())


def test_a_session_that_is_still_opening_is_closed_too(threads: ThreadPoolExecutor) -> None:
    rooms, opening, may_open = FakeBackend(), threading.Event(), threading.Event()

    def slowly(setup: Setup) -> SandboxSession:
        opening.set()
        may_open.wait(10)
        return rooms.session(setup)

    async def play() -> None:
        room = environment(threads, slowly)
        await room.reset()
        step = asyncio.create_task(room.step("ls"))
        await asyncio.to_thread(opening.wait, 10)
        step.cancel()
        await asyncio.gather(step, return_exceptions=True)
        closing = asyncio.create_task(room.close())
        await asyncio.sleep(0)  # the closing begins, and waits for the session
        may_open.set()
        await closing

    asyncio.run(play())
    assert [session.closed for session in rooms.sessions] == [True]


def test_closing_does_not_wait_for_a_command(threads: ThreadPoolExecutor) -> None:
    begun, ended = threading.Event(), threading.Event()

    def hangs(session: FakeSession, command: str) -> str:
        begun.set()
        ended.wait(10)
        return ""

    rooms = FakeBackend(hangs)

    async def play() -> None:
        room = environment(threads, rooms.session)
        await room.reset()
        step = asyncio.create_task(room.step("sleep 9"))
        await asyncio.to_thread(begun.wait, 10)
        step.cancel()
        await asyncio.gather(step, return_exceptions=True)
        await asyncio.wait_for(room.close(), 5)
        assert rooms.sessions[0].closed
        ended.set()

    asyncio.run(play())


def test_a_step_before_the_reset_is_refused(threads: ThreadPoolExecutor) -> None:
    async def play() -> None:
        with pytest.raises(SandboxFailed, match="not reset"):
            await environment(threads, FakeBackend().session).end(Ending("exit"))

    asyncio.run(play())
