"""A scenario as an environment: one session, whose blocking calls run in threads of their own."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeVar

from sandbox.action import Ending, ending_of
from sandbox.environment import Observation, Step
from sandbox.errors import SandboxFailed
from sandbox.protocol import CheckResult, Session, Setup
from sandbox.terminal import exit_code_of, orientation, prompt_of, shown

T = TypeVar("T")
OpenSession = Callable[[Setup], Session]


@dataclass(frozen=True, slots=True)
class Task:
    """A scenario as the engine needs it: what stands in the session, what proves it, how it should end.

    `expected_terminal` is `exit` or `panic`.
    """

    setup: Setup
    checker: str
    expected_terminal: str


@dataclass(frozen=True)
class ShellObservation(Observation):
    """`text` is what the terminal shows; the other fields are None or empty for the orientation."""

    prompt: str = ""
    exit_code: int | None = None
    seconds: float = 0.0
    truncated: bool = False


@dataclass(frozen=True)
class ShellStep(Step):
    """`check` is what the checker said, once `done`; `reward` is 1 for the right terminal and state, else 0."""

    observation: ShellObservation
    check: CheckResult | None = None


class ShellEnvironment:
    """`reset` opens a fresh session and shows its orientation; `exit` and `panic` run the checker and end it.

    `open_session` is a backend's; `threads` has one place for every environment that is open at once.
    """

    def __init__(self, task: Task, open_session: OpenSession, threads: Executor, *, command_seconds: float) -> None:
        self._task = task
        self._open_session = open_session
        self._threads = threads
        self._command_seconds = command_seconds
        self._session: Session | None = None
        self._lock = threading.Lock()
        self._closed = False

    async def reset(self) -> ShellObservation:
        return await self._blocking(self._open)

    async def step(self, action: str, *, seconds: float | None = None) -> ShellStep:
        """`seconds` bounds this command where that is less than the bound of every command."""
        if ending := ending_of(action):
            return await self.end(ending)
        limit = self._command_seconds if seconds is None else min(seconds, self._command_seconds)
        observation = await self._blocking(lambda: self._exec(action, limit))
        return ShellStep(observation, 0.0, False)

    async def end(self, ending: Ending | None) -> ShellStep:
        """Ends the episode with a terminal, or without one (None), and runs the checker."""
        check = await self._blocking(lambda: self._check(ending))
        right = ending is not None and ending.terminal == self._task.expected_terminal and check.passed
        return ShellStep(ShellObservation(""), float(right), True, check=check)

    async def close(self) -> None:
        """Removes the session. One that is still being opened is removed by its own thread."""
        with self._lock:
            self._closed = True
            session = self._session
        if session is not None:
            await self._blocking(session.close)

    async def _blocking(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _open(self) -> ShellObservation:
        session = self._open_session(self._task.setup)
        with self._lock:
            self._session = session
            closed = self._closed
        if closed:
            session.close()
            raise SandboxFailed("the episode was given up while its session was opened")
        prompt = prompt_of(session.cwd())
        setup = self._task.setup
        return ShellObservation(orientation(banner=setup.banner, motd=setup.motd, prompt=prompt), prompt=prompt)

    def _exec(self, command: str, seconds: float) -> ShellObservation:
        session = self._in_use()
        result = session.exec(command, seconds)
        prompt = prompt_of(session.cwd())
        return ShellObservation(
            shown(result, prompt),
            prompt=prompt,
            exit_code=exit_code_of(result),
            seconds=result.duration,
            truncated=result.truncated,
        )

    def _check(self, ending: Ending | None) -> CheckResult:
        terminal, reason = (ending.terminal, ending.reason) if ending else ("", "")
        return self._in_use().check(self._task.checker, terminal=terminal, panic_reason=reason)

    def _in_use(self) -> Session:
        if self._session is None:
            raise SandboxFailed("the episode has no session: it was not reset")
        return self._session
