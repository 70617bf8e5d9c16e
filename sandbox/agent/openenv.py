"""An episode on an OpenEnv server: one WebSocket from reset to close, with `openenv-core`'s generic client.

The generic client passes observations on unchanged, so no unknown field is lost. Every fault of the connection or the
server is infrastructure: the episode starts again and is never scored.
"""

import asyncio
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, cast

import httpx

from sandbox.agent.environment import Observation, Step
from sandbox.errors import EnvironmentFull, SandboxFailed, UnknownAction

if TYPE_CHECKING:
    from openenv.core.generic_client import GenericEnvClient

OK = 200
COMMAND_FIELDS = ("command", "action", "message", "text")
CONNECT_SECONDS = 10.0
CLOSE_SECONDS = 2.0
MAX_MEGABYTES = 16.0
FULL = "CAPACITY_REACHED"
# Fields that an episode is scored by are never shown to an agent, at any depth.
SCORING = re.compile(r"criteri|expected|solution|answer|reference|rubric|ground_truth|grader|checker", re.IGNORECASE)
# Fields of the server that are not part of the observation.
BESIDE = frozenset({"done", "reward", "metadata"})


class Network(Protocol):
    """How servers are reached: the caller decides which hosts are allowed, and connects to the address it checked."""

    def transport(self) -> httpx.AsyncBaseTransport: ...

    async def socket(self, url: str, seconds: float) -> socket.socket | None:
        """A connection to the host of `url`, or None if the client may connect by itself."""
        ...


class OpenEnvEnvironment:
    """`url` is the server's (`ws://host:port`), `reset` the arguments of its reset (`seed`, `task_id`, …).

    `action_field` is the field for the command in the server's action (`action_field_of` finds it); `seconds` is the
    timeout of each response. Without a `network` the client connects by itself.
    """

    def __init__(
        self,
        url: str,
        *,
        reset: Mapping[str, object],
        action_field: str,
        seconds: float = 60.0,
        network: Network | None = None,
    ) -> None:
        # The client appends the path of the socket itself.
        self._url = url.rstrip("/").removesuffix("/ws")
        self._reset, self._action_field, self._seconds = dict(reset), action_field, seconds
        self._network = network
        self._client: GenericEnvClient | None = None
        self._beside: Mapping[str, object] = {}

    async def reset(self) -> Observation:
        await asyncio.to_thread(_client_class)  # the first import takes seconds; other episodes continue
        self._client = _client_class()(
            self._url,
            connect_timeout_s=CONNECT_SECONDS,
            message_timeout_s=self._seconds,
            max_message_size_mb=MAX_MEGABYTES,
            mode="simulation",
        )
        self._keep_beside(self._client)
        return (await self._ask("reset", self._connect_and_reset(self._client))).observation

    def _keep_beside(self, client: "GenericEnvClient") -> None:
        """The client drops what a server sends beside observation, reward and done."""
        parse = client._parse_result

        def parse_all(payload: dict[str, Any]) -> Any:
            self._beside = {
                name: value for name, value in payload.items() if name not in ("observation", "reward", "done")
            }
            return parse(payload)

        client._parse_result = parse_all

    async def about_task(self) -> Mapping[str, object]:
        if self._client is None:
            raise SandboxFailed("a question about the task before the reset")
        return {"data": self._beside, "state": await self._answered("state", _state_of(self._client))}

    async def _connect_and_reset(self, client: "GenericEnvClient") -> Any:
        # With a socket of ours the client neither resolves the name again nor follows a redirect.
        if self._network and (connected := await self._network.socket(self._url, CONNECT_SECONDS)):
            from websockets.asyncio.client import connect

            url = f"{re.sub('^http', 'ws', self._url)}/ws"
            client._ws = await connect(
                url,
                sock=connected,
                open_timeout=CONNECT_SECONDS,
                max_size=int(MAX_MEGABYTES * 1024 * 1024),
                proxy=None,
            )
        return await client.reset(**self._reset)

    async def step(self, action: str) -> Step:
        if self._client is None:
            raise SandboxFailed("a step before the reset")
        return await self._ask("step", self._client.step({self._action_field: action}))

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            # A server that hangs does not respond to this either; the socket is dropped with the client.
            with suppress(TimeoutError):
                await asyncio.wait_for(client.disconnect(), CLOSE_SECONDS)

    async def _last_words(self) -> str:
        """The server's message before it hung up: the client could not send and has not read it."""
        socket = self._client._ws if self._client is not None else None
        if socket is None:
            return ""
        try:
            return str(await asyncio.wait_for(socket.recv(), CLOSE_SECONDS))
        except (TimeoutError, OSError, _closed_socket()):
            return ""

    async def _answered(self, what: str, answer: Any) -> Any:
        try:
            return await answer
        except TimeoutError:
            raise SandboxFailed(f"{self._url} did not answer a {what} within {self._seconds:g} s") from None
        except (ConnectionError, OSError, RuntimeError, ValueError, TypeError, _closed_socket()) as error:
            hung_up = isinstance(error, _closed_socket())
            reason = f"{error} {await self._last_words() if hung_up else ''}".strip() or type(error).__name__
            kind = EnvironmentFull if FULL in reason else SandboxFailed
            raise kind(f"{self._url}, {what}: {reason}") from None

    async def _ask(self, what: str, answer: Any) -> Step:
        said = await self._answered(what, answer)
        fields = said.observation
        if not isinstance(fields, dict):
            raise SandboxFailed(f"{self._url}, {what}: the observation is {type(fields).__name__}, not an object")
        reward = float(said.reward) if isinstance(said.reward, int | float) else None
        return Step(Observation(visible_text(fields), fields), reward, bool(said.done), self._beside)


async def _state_of(client: "GenericEnvClient") -> Mapping[str, object]:
    """The environment's state; empty if the server refuses to tell."""
    try:
        state = await client.state()
    except RuntimeError:
        return {}
    return state if isinstance(state, dict) else {}


async def action_field_of(url: str, network: Network | None = None) -> str:
    """Find the field for a command in the server's action: the only required text in its schema, else one with a usual
    name. Without a schema it is the first of the usual names."""
    transport = network.transport() if network else None
    async with httpx.AsyncClient(timeout=CONNECT_SECONDS, trust_env=False, transport=transport) as client:
        try:
            answer = await client.get(f"{_http(url)}/schema")
            action = answer.json().get("action") if answer.status_code == OK else None
        except (httpx.HTTPError, ValueError) as error:
            raise SandboxFailed(f"{url}, schema: {error or type(error).__name__}") from None
    if not isinstance(action, dict):
        return COMMAND_FIELDS[0]
    texts = [name for name, value in action.get("properties", {}).items() if value.get("type") == "string"]
    required = [name for name in texts if name in action.get("required", [])]
    if len(required) == 1:
        return str(required[0])
    usual = next((name for name in COMMAND_FIELDS if name in texts), None)
    if usual is None:
        raise UnknownAction(f"{url} takes actions with {', '.join(texts) or 'no text'}; name the field of the command.")
    return usual


def _http(url: str) -> str:
    return re.sub("^ws", "http", url).rstrip("/").removesuffix("/ws")


def visible(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields that an agent may see: not empty, and none that it is scored by, at any depth."""
    shown: dict[str, object] = {}
    for name, value in fields.items():
        if name in BESIDE or SCORING.search(name) or value is None or value == "":
            continue
        shown[name] = _seen(value)
    return shown


def _seen(value: object) -> object:
    if isinstance(value, dict):
        return visible(cast("Mapping[str, object]", value))
    return [_seen(inner) for inner in value] if isinstance(value, list) else value


def visible_text(fields: Mapping[str, object]) -> str:
    """One line per field; nested fields as `name.inner`."""
    lines: list[str] = []

    def write(values: Mapping[str, object], before: str) -> None:
        for name, value in values.items():
            if isinstance(value, dict):
                write(value, f"{before}{name}.")
            else:
                lines.append(f"{before}{name}: {value}")

    write(visible(fields), "")
    return "\n".join(lines)


def can_play() -> bool:
    """Return whether the client is installed; it is an optional part."""
    return find_spec("openenv") is not None


@cache
def _client_class() -> "type[GenericEnvClient]":
    from openenv.core.generic_client import GenericEnvClient as Client

    client: type[GenericEnvClient] = Client
    return client


@cache
def _closed_socket() -> type[Exception]:
    from websockets.exceptions import WebSocketException

    return WebSocketException
