"""Episodes on servers whose replies are odd: a faulty server is infrastructure, never an exception."""

import asyncio
import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from sandbox.agent.action_form import ActionForm, ActionKind
from sandbox.agent.environment import EnvironmentStep, visible, visible_text
from sandbox.agent.openenv import OpenEnvEnvironment, action_form_of
from sandbox.errors import SandboxFailed

COMMAND = ActionForm(ActionKind.COMMAND, {"command": {"type": "string"}}, ("command",), main="command")


def test_a_field_is_hidden_for_its_own_name_only() -> None:
    fields = {"preferences": "tea", "unexpected_end": "no", "expected": 1, "cross_reference": 2, "goldAnswer": 3}
    assert visible(fields) == {"preferences": "tea", "unexpected_end": "no"}


def test_an_observation_is_shown_whole() -> None:
    """Names of the protocol and empty values mean something inside the server's own fields."""
    fields = {
        "message": "Ann is away.",
        "slots": {"mon": None, "tue": "", "wed": {}},
        "todo": [{"done": False, "reward": 2, "metadata": {"by": "Ann"}, "answer": "SECRET"}],
        "größe 1": [[1.5, 2], [0, 1]],
        "result": {"content": [], "data": [], "is_error": False},
        "done": True,
    }
    text = visible_text(fields)
    for shown in ("Ann is away.", "slots.mon: None", "slots.wed: {}", "'done': False, 'reward': 2", "'by': 'Ann'"):
        assert shown in text
    assert "größe 1: [[1.5, 2], [0, 1]]" in text and "result.data: []" in text
    assert "SECRET" not in text and "done: True" not in text


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([[[0.5, 1, 2]] * 100] * 100, "(30000 numbers, not shown)"),
        (base64.b64encode(bytes(range(256)) * 40).decode(), "(13,656 characters of data, not shown)"),
        ("data:image/png;base64," + "A" * 600, "(622 characters of data, not shown)"),
        ("word " * 40_000, "(134,464 characters not shown)"),
        ("A" * 5_000, "A" * 5_000),
        ([["X", "", "O"]] * 1_000, "['X', '', 'O'], ['X'"),
    ],
)
def test_pictures_and_long_texts_are_described(value: object, said: str) -> None:
    """No model reads them, and they would push the rest out of its context."""
    assert said in visible_text({"screen": value}) and said in visible_text({"inner": {"screen": value}})
    result = {"content": [{"type": "image", "data": value}, {"type": "text", "text": "ok"}], "isError": False}
    assert "ok" in visible_text({"result": result}) and said in visible_text({"result": result})


def play(replies: Sequence[str], schema: bytes = b"{}") -> list[EnvironmentStep]:
    """The steps of an episode on a server that sends `replies` one after the other: to the reset, then to each step."""

    async def talk(socket: ServerConnection) -> None:
        for reply in replies:
            await socket.recv()
            await socket.send(reply)
        await socket.wait_closed()

    def describe(socket: ServerConnection, request: Request) -> Response | None:
        if request.path == "/ws":
            return None
        return Response(200, "OK", Headers({"Content-Length": str(len(schema))}), schema)

    async def episode() -> list[EnvironmentStep]:
        async with serve(talk, "127.0.0.1", 0, process_request=describe) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            await action_form_of(url)
            environment = OpenEnvEnvironment(url, reset={}, form=COMMAND, seconds=5)
            try:
                await environment.reset()
                return [await environment.step("ls") for _ in replies[1:]]
            finally:
                await environment.close()

    return asyncio.run(episode())


def observed(value: object = "x", **more: Any) -> str:
    return json.dumps({"type": "observation", "data": {"observation": {"output": value}, "done": False, **more}})


@pytest.mark.parametrize(
    "reply",
    [
        "[" * 200_000,
        '{"type": "observation", "data": {"observation": ' + '{"a": ' * 500 + "1" + "}" * 502,
        observed(reward=float("nan")),
        observed(reward=10**400),
        observed(reward="0.5"),
        observed(reward={"value": 1}),
        '{"type": "observation", "data": {"observation": {}, "reward": 1e400}}',
        "null",
        '"observation"',
        '{"type": "observation", "data": []}',
        '{"type": "observation", "data": {"observation": "x"}}',
    ],
)
def test_a_reply_that_is_no_reply_is_infrastructure(reply: str) -> None:
    for replies in ([reply], [observed(), reply]):
        with pytest.raises(SandboxFailed):
            play(replies)


def test_numbers_that_are_none_in_json_are_shown_as_text() -> None:
    (step,) = play([observed(), observed([float("nan"), 1.5], reward=True)])
    assert (step.observation.fields, step.reward) == ({"output": ["NaN", 1.5]}, 1.0)


@pytest.mark.parametrize("schema", [b"[" * 100_000, b"[]", b"<html>", b'{"a": "' + b"x" * (17 * 2**20) + b'"}'])
def test_a_schema_that_cannot_be_read_is_infrastructure(schema: bytes) -> None:
    with pytest.raises(SandboxFailed, match="schema"):
        play([], schema)
