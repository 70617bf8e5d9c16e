"""Actions that a server refuses in a spelling of its own, actions that break it, and words that complete no task."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from sandbox.agent.action_form import form_of
from sandbox.agent.episode import Message, ModelReply
from sandbox.agent.live import LiveEpisode, LivePrompt, Rules, run_live_episode
from sandbox.agent.openenv import OpenEnvEnvironment
from sandbox.agent.reported_task import AskedTask
from sandbox.errors import EnvironmentFull, SandboxFailed

FORM = form_of({"properties": {"command": {"type": "string"}}, "required": ["command"]})
WHY = "no such move"
# The reply to an action; None ends the session. `number` counts the actions of all sessions.
Answer = Callable[[str, int], Any]


def observed(fields: dict[str, Any], **data: Any) -> dict[str, Any]:
    return {"type": "observation", "data": {"observation": fields, **data}}


def error(**data: Any) -> dict[str, Any]:
    return {"type": "error", "data": data}


WALKED = observed({"text": "x"})


def play(answer: Answer, *replies: str) -> LiveEpisode:
    left, number = list(replies), 0

    async def talk(socket: ServerConnection) -> None:
        nonlocal number
        async for text in socket:
            message = json.loads(text)
            if message["type"] in ("reset", "state"):
                await socket.send(json.dumps(observed({"text": "begin"})))
            elif message["type"] == "step":
                number += 1
                reply = answer(message["data"]["command"], number)
                if reply is None:
                    await socket.close(1011)
                    return
                await socket.send(json.dumps(reply))

    async def complete(messages: Sequence[Message]) -> ModelReply:
        return ModelReply(left.pop(0))

    async def episode() -> LiveEpisode:
        async with serve(talk, "127.0.0.1", 0) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            environment = OpenEnvEnvironment(url, reset={}, form=FORM, seconds=2)
            try:
                return await run_live_episode(
                    environment=environment,
                    complete=complete,
                    prompt=LivePrompt("Act.", "{output} {error}"),
                    rules=Rules(read=FORM.read, fallback=None, asks_hint=lambda _: False),
                    max_steps=len(replies),
                    asked=AskedTask(known=False),
                )
            finally:
                await environment.close()

    return asyncio.run(episode())


@pytest.mark.parametrize(
    "refusal",
    [
        error(code=400, message=WHY),
        error(code="422", message=WHY),
        error(status=404, detail=WHY),
        error(status_code="409 Conflict", reason=WHY),
        error(code="INVALID_ACTION", message=WHY),
        error(error_type="IllegalMove", message=WHY),
        error(code=500, message=WHY),
        error(message=WHY),
        {"type": "error", "data": WHY},
        {"type": "error", "code": "BadRequest", "message": WHY},
        {"type": "ERROR", "error": {"code": "unknown_action", "message": WHY}},
        {"detail": [{"loc": ["body", "command"], "msg": WHY}], "status": 422},
        {"detail": WHY},
        {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": WHY},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": WHY}},
    ],
)
def test_an_action_is_refused_in_any_spelling(refusal: dict[str, Any]) -> None:
    """Without a code of a refusal it is tried again after the episode, beside an action of ours."""
    done = observed({"text": "there"}, reward=1.0, done=True)
    episode = play(lambda action, _: refusal if action == "fly" else done, "fly", "walk")
    assert [step.refused for step in episode.steps] == [True, False] and episode.completed
    assert WHY in str(episode.steps[0].fields["error"]) and episode.invalid_actions == 1


def test_an_action_that_ends_each_session_is_the_models() -> None:
    episode = play(lambda action, _: None if action == "fly" else observed({"text": "x"}), "walk", "fly", "walk")
    assert (len(episode.steps), episode.invalid_actions, episode.completed) == (2, 1, False)


@pytest.mark.parametrize(
    "answer",
    [
        lambda action, _: None,
        lambda action, number: None if number == 1 else observed({"text": "x"}),
        lambda action, number: None if number in (2, 3) else observed({"text": "x"}),
        lambda action, _: error(code=500, message="no database"),
        lambda action, _: error(message="no database"),
        lambda action, _: error(code=503, message="overloaded"),
        lambda action, _: error(code="SESSION_ERROR", message="no room"),
        lambda action, _: error(code="ResponseValidationError", message="no such field") if action == "run" else WALKED,
        lambda action, _: error(code="invalid_api_key", message="who are you?") if action == "run" else WALKED,
        lambda action, number: error(code=500, message="x") if number == 1 else observed({"text": "x"}),
        lambda action, _: "<html>Internal Server Error</html>",
        lambda action, _: observed({"text": "x"}, done="false"),
    ],
)
def test_a_server_that_fails_by_itself_is_infrastructure(answer: Answer) -> None:
    """At every action, or once: the same action does not fail again."""
    with pytest.raises(SandboxFailed):
        play(answer, "walk", "run", "walk")


@pytest.mark.parametrize(
    ("fields", "data", "completed"),
    [
        ({"success": True}, {}, False),
        ({"success": True}, {"reward": 0.5}, False),
        ({"success": True}, {"reward": 0.0, "done": True}, False),
        ({"success": False}, {"reward": 1.0, "done": True}, False),
        ({"completed": True}, {"done": True}, True),
        ({"success": True}, {"reward": 1, "done": 1}, True),
        ({"correct": False}, {"reward": 0.2, "done": True}, False),
        ({"success": True, "is_correct": False}, {"done": True}, False),
        ({"task_achieved": True}, {"reward": 0.0}, True),
        ({"solved": True}, {}, True),
        ({"error": "the action failed"}, {"done": True, "reward": None}, False),
    ],
)
def test_an_action_that_succeeds_completes_no_task(
    fields: dict[str, Any], data: dict[str, Any], completed: bool
) -> None:
    """`success` is of the action in environments of shells, of git and of Python."""
    assert play(lambda *_: observed(fields, **data), "walk").completed is completed


@pytest.mark.parametrize(("progress", "known"), [(0.5, 0.5), (50, None), (-1, None), ("half", None)])
def test_progress_is_a_share(progress: object, known: float | None) -> None:
    assert play(lambda *_: observed({"progress": progress}), "walk").steps[0].progress == known


@pytest.mark.parametrize(
    ("rewards", "total", "terminal"),
    [([None, None], None, None), ([1, None], 1.0, 0.0), ([None, 0.0], 0.0, 0.0), ([0.25, 0.5], 0.75, 0.5)],
)
def test_a_reward_that_was_not_given_is_no_reward_of_nothing(
    rewards: list[float | None], total: float | None, terminal: float | None
) -> None:
    episode = play(lambda _, number: observed({"text": "x"}, reward=rewards[number - 1]), "walk", "walk")
    assert (episode.total_reward, episode.terminal_reward, episode.max_progress) == (total, terminal, None)


def test_half_a_character_is_shown_as_a_mark() -> None:
    """No database and no endpoint takes it."""
    text = '{"type": "observation", "data": {"observation": {"te\\udc00xt": "a\\ud800b \\ud83d\\ude00"}, "done": true}}'
    assert play(lambda *_: json.loads(text), "walk").steps[0].fields == {"te?xt": "a?b 😀"}


def test_a_server_that_admits_no_more_sessions_is_full() -> None:
    def refuse(_: ServerConnection, request: Request) -> Response:
        return Response(429, "Too Many Requests", Headers({"Content-Length": "0"}), b"")

    async def connect() -> None:
        async with serve(lambda _: asyncio.sleep(0), "127.0.0.1", 0, process_request=refuse) as server:
            url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            await OpenEnvEnvironment(url, reset={}, form=FORM).reset()

    with pytest.raises(EnvironmentFull):
        asyncio.run(connect())
