"""A scenario as an environment: one session, whose blocking calls run in threads, and its text on a terminal."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeVar

from sandbox.agent.action import Ending, ending_of
from sandbox.agent.environment import EnvironmentStep, Observation
from sandbox.errors import SandboxError, SandboxFailed
from sandbox.protocol import HOME, USER, CheckResult, ExecResult, SandboxSession, Setup

T = TypeVar("T")
OpenSession = Callable[[Setup], SandboxSession]


@dataclass(frozen=True, slots=True)
class ShellTask:
    """The engine's view of a scenario: the session's setup, the checker, and `exit` or `panic` as its right end."""

    setup: Setup
    checker: str
    expected_terminal: str


@dataclass(frozen=True)
class ShellObservation(Observation):
    """`text` is the terminal's output; other fields are None or empty for the orientation."""

    prompt: str = ""
    exit_code: int | None = None
    seconds: float = 0.0
    truncated: bool = False


@dataclass(frozen=True)
class ShellStep(EnvironmentStep):
    """`check` is the checker's result once `done`; `reward` is 1 for the right terminal and state, else 0."""

    observation: ShellObservation
    check: CheckResult | None = None


class ShellEnvironment:
    """`reset` shows the orientation while a fresh session opens in a thread; the first step raises what went wrong with
    it. `exit` and `panic` run the checker and end the episode.

    `open_session` is a backend's; `threads` needs one thread for every environment that is open at once.
    """

    def __init__(
        self, task: ShellTask, open_session: OpenSession, threads: Executor, *, command_seconds: float
    ) -> None:
        self._task = task
        self._open_session = open_session
        self._threads = threads
        self._command_seconds = command_seconds
        self._opening: asyncio.Future[SandboxSession] | None = None

    async def reset(self) -> ShellObservation:
        """The text at login is known beforehand, so model and sandbox need not wait for each other."""
        setup = self._task.setup
        self._opening = self._blocking(lambda: self._open_session(setup))
        prompt = prompt_of(HOME)
        return ShellObservation(orientation(banner=setup.banner, motd=setup.motd, prompt=prompt), prompt=prompt)

    async def step(self, action: str, *, seconds: float | None = None) -> ShellStep:
        """`seconds` is the time limit of this command, if it is less than that of every command."""
        if ending := ending_of(action):
            return await self.end(ending)
        limit = self._command_seconds if seconds is None else min(seconds, self._command_seconds)
        session = await self._opened()
        observation = await self._blocking(lambda: _exec(session, action, limit))
        return ShellStep(observation, 0.0, False)

    async def end(self, ending: Ending | None) -> ShellStep:
        """End the episode with a terminal, or without one (None), and run the checker."""
        terminal, reason = (ending.terminal, ending.reason) if ending else ("", "")
        session, checker = await self._opened(), self._task.checker
        check = await self._blocking(lambda: session.check(checker, terminal=terminal, panic_reason=reason))
        right = terminal == self._task.expected_terminal and check.passed
        return ShellStep(ShellObservation(""), float(right), True, check=check)

    async def close(self) -> None:
        """Remove the session, even if it is still being opened or the caller is cancelled."""
        if self._opening is not None:
            await asyncio.shield(asyncio.ensure_future(self._remove(self._opening)))

    async def _remove(self, opening: "asyncio.Future[SandboxSession]") -> None:
        try:
            session = await opening
        except SandboxError:
            return  # it did not open; the first step has raised why
        await self._blocking(session.close)

    async def _opened(self) -> SandboxSession:
        if self._opening is None:
            raise SandboxFailed("the episode has no session: it was not reset")
        # A cancelled caller must not cancel the opening: its session would never be closed.
        return await asyncio.shield(self._opening)

    def _blocking(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return asyncio.get_running_loop().run_in_executor(self._threads, work)


def _exec(session: SandboxSession, command: str, seconds: float) -> ShellObservation:
    result = session.exec(command, seconds)
    prompt = prompt_of(session.cwd())
    return ShellObservation(
        screen_text(result, prompt),
        prompt=prompt,
        exit_code=exit_code_of(result),
        seconds=result.duration,
        truncated=result.truncated,
    )


HOST = "host"
# What a shell prints for a killed job; SIGKILL is exit code 128 + 9.
KILLED, KILLED_CODE = "Killed\n", 137


def prompt_of(cwd: str) -> str:
    """The prompt in this directory, with `~` for the home."""
    shown = f"~{cwd.removeprefix(HOME)}" if cwd == HOME or cwd.startswith(f"{HOME}/") else cwd
    return f"{USER}@{HOST}:{shown}$ "


def orientation(*, banner: str, motd: str, prompt: str) -> str:
    """The text at login: the banner, the message of the day, the first prompt."""
    lines = [text if text.endswith("\n") else f"{text}\n" for text in (banner, motd) if text]
    return "".join(lines) + prompt


def exit_code_of(result: ExecResult) -> int:
    return KILLED_CODE if result.timed_out else result.exit_code


def screen_text(result: ExecResult, prompt: str) -> str:
    """The output and the next prompt; after a timeout also the shell's message that the command was killed."""
    output = result.output
    if result.timed_out:
        output += ("" if not output or output.endswith("\n") else "\n") + KILLED
    return output + prompt
