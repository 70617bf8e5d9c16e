"""An OpenEnv server of scenarios: each WebSocket plays its episodes in sandboxes of its own.

`reset` takes the `name` of a scenario (or `task_id`), a `seed` that always chooses the same one, or nothing for any.
`step` takes `{"command": …}`. An episode ends with `exit` or `panic`, or at its limits; then the checker runs, and the
reward is 1 if the scenario is solved, else 0. Nothing that the checker knows is shown. `openenv.py` is the client.
"""

import asyncio
import json
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol

from sandbox.agent.action import FormatError, ending_of, read_action
from sandbox.agent.episode import EpisodeLimits, outcome_of
from sandbox.agent.openenv import FULL, MAX_BYTES, REFUSED
from sandbox.agent.shell_environment import ShellEnvironment, ShellObservation, ShellTask
from sandbox.errors import SandboxFailed, SetupRefused

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

Json = dict[str, Any]
BAD_JSON, UNKNOWN, BROKEN = "INVALID_JSON", "UNKNOWN_TYPE", "SESSION_ERROR"
_TEXT = {"type": "string"}
SCHEMA: Json = {
    "action": {
        "type": "object",
        "title": "ShellAction",
        "properties": {"command": {**_TEXT, "description": "One command for the shell, or `exit` or `panic REASON`."}},
        "required": ["command"],
    },
    "observation": {
        "type": "object",
        "properties": {
            "output": {**_TEXT, "description": "What the terminal shows, with the next prompt."},
            "exit_code": {"type": ["integer", "null"]},
            "truncated": {"type": "boolean"},
            "scenario": _TEXT,
        },
    },
    "state": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("episode_id", "scenario", "version", "outcome"), _TEXT),
            "step_count": {"type": "integer"},
        },
    },
}


class NotServed(Exception):
    """The requested scenario is none that is served; the message is sent to the client."""


@dataclass(frozen=True, slots=True)
class ServedTask:
    """A scenario; `version` is the digest of its bundle, `about` is shown to everybody, such as its axes."""

    name: str
    task: ShellTask
    version: str
    about: Mapping[str, object]


class ServedTasks(Protocol):
    """The scenarios to serve, by name. `version` is a digest of all of them."""

    names: Sequence[str]
    version: str

    def load(self, name: str) -> ServedTask:
        """Called in a thread. Raises `NotServed`."""


@dataclass(frozen=True)
class EnvServer:
    """`open_environment` makes the environment of one episode. At most `most` sockets are open at once."""

    title: str
    tasks: ServedTasks
    open_environment: Callable[[ShellTask], ShellEnvironment]
    limits: EpisodeLimits
    most: int
    _open: "set[_Session]" = field(default_factory=set, init=False)

    async def serve(self, host: str, port: int, ready: Callable[[int], None] = lambda port: None) -> None:
        """Serve until the task is cancelled; `ready` gets the port, which is a free one for the port 0."""
        from websockets.asyncio.server import serve

        async with serve(self._play, host, port, process_request=self._document, max_size=MAX_BYTES) as server:
            ready(next(iter(server.sockets)).getsockname()[1])
            await asyncio.Future()

    async def _play(self, client: "ServerConnection") -> None:
        """Answer the messages of one socket until it closes."""
        from websockets.exceptions import ConnectionClosed

        if len(self._open) >= self.most:
            with suppress(ConnectionClosed):
                await client.send(json.dumps(_error(FULL, f"{self.most} sessions are open; try again later.")))
            return
        session = _Session(self)
        self._open.add(session)
        try:
            async for message in client:
                reply = await session.answer(message)
                if reply is None:
                    break
                await client.send(json.dumps(reply))
        except ConnectionClosed:
            pass  # the client has gone; its sandbox goes too
        finally:
            try:
                await session.close()
            finally:
                self._open.discard(session)

    def _document(self, client: "ServerConnection", request: "Request") -> "Response | None":
        """Answer a request over HTTP; None for the path of the socket."""
        documents: dict[str, Json] = {
            "/health": {"status": "healthy"},
            "/schema": SCHEMA,
            "/metadata": {
                "name": self.title,
                "description": f"{len(self.tasks.names)} shell scenarios that passed the gate.",
                "version": self.tasks.version,
                "scenarios": list(self.tasks.names),
            },
        }
        path = request.path.partition("?")[0]
        if path == "/ws":
            return None
        found = documents.get(path)
        response = client.respond(HTTPStatus.OK if found else HTTPStatus.NOT_FOUND, json.dumps(found or {}))
        del response.headers["Content-Type"]
        response.headers["Content-Type"] = "application/json"
        return response


class _Session:
    """The episodes of one socket, one after the other."""

    def __init__(self, server: EnvServer) -> None:
        self._server = server
        self._environment: ShellEnvironment | None = None
        self._served: ServedTask | None = None
        self._state: Json = {}
        self._seconds = 0.0

    async def answer(self, message: str | bytes) -> Json | None:
        """Return the reply to a message; None to one that closes the session."""
        try:
            said = json.loads(message)
        except (ValueError, RecursionError) as error:
            return _error(BAD_JSON, f"The message is no JSON: {error}")
        kind, data = (said.get("type"), said.get("data", {})) if isinstance(said, dict) else (None, {})
        if kind == "close":
            return None
        if not isinstance(data, dict):
            return _error(REFUSED, "`data` is no object.")
        try:
            if kind == "reset":
                return await self._reset(data)
            if kind == "step":
                return await self._step(data)
        except (NotServed, FormatError) as refused:
            return _error(REFUSED, str(refused))
        except (SandboxFailed, SetupRefused) as failed:
            await self.close()
            return _error(BROKEN, f"The sandbox failed: {failed} Reset for another one.")
        if kind == "state":
            return {"type": "state", "data": self._state}
        return _error(UNKNOWN, "The types are reset, step, state and close.")

    async def close(self) -> None:
        environment, self._environment = self._environment, None
        if environment is not None:
            await environment.close()

    async def _reset(self, data: Json) -> Json:
        served = await asyncio.to_thread(self._server.tasks.load, self._chosen(data))
        await self.close()
        self._environment = self._server.open_environment(served.task)
        self._served, self._seconds = served, 0.0
        episode = data.get("episode_id")
        self._state = {
            "episode_id": episode if isinstance(episode, str) and episode else uuid.uuid4().hex,
            "step_count": 0,
            "scenario": served.name,
            "version": served.version,
            "outcome": "",
        }
        return _observed(await self._environment.reset(), scenario=served.name, about=dict(served.about))

    def _chosen(self, data: Json) -> str:
        name, seed, names = data.get("name") or data.get("task_id"), data.get("seed"), self._server.tasks.names
        if name is not None:
            if name not in names:
                raise NotServed(f"No scenario {str(name)[:200]!r} is served; /metadata lists them.")
            return str(name)
        if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool)):
            raise NotServed("`seed` is no integer.")
        return random.Random(seed).choice(names)  # noqa: S311 - a task, not a secret

    async def _step(self, data: Json) -> Json:
        environment, served, command = self._environment, self._served, data.get("command")
        if environment is None or served is None:
            raise NotServed("The episode is over: reset first." if self._state else "Reset first.")
        if not isinstance(command, str):
            raise FormatError("`command` is no text.")
        action, limits = read_action(command), self._server.limits
        self._state["step_count"] += 1
        step = await environment.step(action, seconds=limits.episode_seconds - self._seconds)
        self._seconds += step.observation.seconds
        outcome = ""
        if step.check is not None and (ending := ending_of(action)):
            outcome = outcome_of(ending.terminal, expected=served.task.expected_terminal, passed=step.check.passed)
        elif self._seconds >= limits.episode_seconds:
            outcome = "timeout"
        elif self._state["step_count"] >= limits.max_turns:
            outcome = "no_terminal"
        self._state["outcome"] = outcome
        if outcome:
            await self.close()
        return _observed(step.observation, reward=step.reward or 0.0, done=bool(outcome), scenario=served.name)


def _observed(shown: ShellObservation, *, reward: float | None = None, done: bool = False, **besides: object) -> Json:
    observation = {"output": shown.text, "exit_code": shown.exit_code, "truncated": shown.truncated, **besides}
    return {"type": "observation", "data": {"observation": observation, "reward": reward, "done": done}}


def _error(code: str, message: str) -> Json:
    return {"type": "error", "data": {"code": code, "message": message}}
