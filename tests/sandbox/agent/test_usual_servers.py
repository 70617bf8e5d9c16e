"""Models act on stand-ins for OpenEnv's own environments, by each server's own schema."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from sandbox.agent.action_form import ActionForm, ActionKind
from sandbox.agent.episode import Message, ModelReply
from sandbox.agent.live import LiveEpisode, LivePrompt, Rules, run_live_episode
from sandbox.agent.openenv import OpenEnvEnvironment, action_form_of
from sandbox.agent.reported_task import AskedTask
from sandbox.errors import SandboxFailed, UnknownAction
from tests.sandbox.shop import usual_servers

__all__ = ["usual_servers"]

PROMPT = LivePrompt("Act.", "{task}\n{output}\n{error}\n{history}")


@dataclass
class Played:
    episode: LiveEpisode
    system: str
    prompts: list[str] = field(default_factory=list)


def form_at(address: str) -> ActionForm:
    return asyncio.run(action_form_of(address))


def play(address: str, *replies: str, max_steps: int = 0, seconds: float = 20.0) -> Played:
    """An episode whose model says `replies` one after the other, and the last one for ever."""
    form, left, seen = form_at(address), list(replies), []

    async def complete(messages: Sequence[Message]) -> ModelReply:
        seen.append(messages)
        return ModelReply(left.pop(0) if len(left) > 1 else left[0])

    async def episode() -> LiveEpisode:
        environment = OpenEnvEnvironment(address, reset={"seed": 1}, form=form, seconds=seconds)
        try:
            return await run_live_episode(
                environment=environment,
                complete=complete,
                prompt=PROMPT,
                rules=Rules(read=form.read, fallback=None, asks_hint=lambda _: False),
                max_steps=max_steps or len(replies),
                asked=AskedTask(known=False),
            )
        finally:
            await environment.close()

    found = asyncio.run(episode())
    return Played(found, str(seen[0][0]["content"]), [str(messages[1]["content"]) for messages in seen])


def test_a_maze_takes_whole_numbers(usual_servers: str) -> None:
    played = play(f"{usual_servers}/maze", "1", "I go on: 3", "3")
    assert played.episode.completed and played.episode.invalid_actions == 0
    assert [step.action for step in played.episode.steps] == ["1", "3", "3"]
    assert "a whole number" in played.system and "Maze" in played.system
    assert "legal_actions: [3]" in played.prompts[0] and "current_position: [1, 0]" in played.prompts[2]


def test_refused_actions_are_failed_steps_of_the_model(usual_servers: str) -> None:
    """`east` is refused by the schema, 9 by an exception; the episode goes on in the same session."""
    played = play(f"{usual_servers}/maze", "3", "east", "9", "3")
    assert (played.episode.completed, played.episode.invalid_actions) == (True, 2)
    assert [step.refused for step in played.episode.steps] == [False, True, True, False]
    assert "valid integer" in played.prompts[2] and "9 is not a valid Action" in played.prompts[3]
    assert "current_position: [1, 0]" in played.prompts[3], "the model still sees where it is"


def test_a_model_that_sends_only_what_fails_has_failed(usual_servers: str) -> None:
    """The server executes an action of ours afterwards, so that it is not to blame."""
    played = play(f"{usual_servers}/maze", "9", max_steps=5)
    assert (played.episode.completed, played.episode.invalid_actions) == (False, 3), "three in a row end it"


def test_a_grid_world_shows_coordinates_beside_its_message(usual_servers: str) -> None:
    form = form_at(f"{usual_servers}/grid")
    assert (form.kind, form.main) == (ActionKind.VALUE, "action")
    played = play(f"{usual_servers}/grid", "down", '{"action": "DOWN"}', "NORTH", "So I go RIGHT.", "RIGHT")
    assert (played.episode.completed, played.episode.invalid_actions) == (True, 1)
    assert "one of UP, DOWN, LEFT, RIGHT" in played.system
    assert "Keep going...\nx: 0\ny: 1" in played.prompts[1]
    assert "Input should be 'UP', 'DOWN', 'LEFT' or 'RIGHT'" in played.prompts[3]


def test_an_mcp_server_is_played_by_its_tools(usual_servers: str) -> None:
    call = '{"tool_name": "echo_message", "arguments": {"message": "hi"}}'
    as_api = 'I call:\n```json\n{"name": "echo_message", "arguments": "{\\"message\\": \\"hey\\"}"}\n```'
    wrong = '{"tool_name": "echo_message", "arguments": {"text": 3}}'
    played = play(f"{usual_servers}/echo", call, as_api, '{"tool_name": "nope"}', wrong, "hello", call)
    assert "- echo_message: Echo back the provided message." in played.system and '"message"' in played.system
    assert played.prompts[1].splitlines()[1] == "hi" and played.prompts[2].splitlines()[1] == "hey"
    assert "nope" in played.prompts[3] and "Missing required argument" in played.prompts[4]
    steps = played.episode.steps
    assert [step.refused for step in steps] == [False, False, True, True, False, False]
    assert [step.format_failure for step in steps] == [False, False, False, False, True, False]
    assert (played.episode.invalid_actions, played.episode.format_failures) == (2, 1)


@pytest.mark.parametrize("kind", ["world", "own"])
def test_tools_are_played_by_the_servers_own_class_of_actions(usual_servers: str, kind: str) -> None:
    """One takes a call or a list, the other lists its tools by a message of MCP only."""
    call = '{"tool_name": "echo_message", "arguments": {"message": "hi"}}'
    played = play(f"{usual_servers}/{kind}", call, '{"tool_name": "nope"}')
    assert "- echo_message: Echo back the provided message." in played.system and '"message"' in played.system
    assert [step.refused for step in played.episode.steps] == [False, True]
    assert played.prompts[1].splitlines()[1] == "hi"


def test_a_server_without_tools_cannot_be_played(usual_servers: str) -> None:
    with pytest.raises(SandboxFailed, match="lists no tools"):
        play(f"{usual_servers}/bare", '{"tool_name": "look"}')


@pytest.mark.parametrize(("end", "completed"), [("submit wrong", False), ("submit right", True), ("ls", False)])
def test_a_command_that_succeeds_is_no_task_that_is_completed(usual_servers: str, end: str, completed: bool) -> None:
    played = play(f"{usual_servers}/shell", '{"command": "ls"}', json.dumps({"command": end}))
    assert played.episode.completed is completed
    assert [step.fields["success"] for step in played.episode.steps] == [True, True]


def test_code_is_read_from_its_fence(usual_servers: str) -> None:
    played = play(f"{usual_servers}/coding", "First:\n```python\nx = 2\nprint(x + 3)\n```", "print(x * 2)", "print(x")
    assert "5" in played.prompts[1] and "exit_code: 0" in played.prompts[1] and "4" in played.prompts[2]
    assert played.episode.steps[2].fields["exit_code"] == 1, "a failing program is no refusal"
    assert played.episode.invalid_actions == 0


def test_code_that_never_ends_is_the_models(usual_servers: str) -> None:
    played = play(f"{usual_servers}/coding", "import time; time.sleep(3)", seconds=1.0)
    assert (played.episode.completed, played.episode.invalid_actions) == (False, 1)
    assert "No reply within 1 s" in str(played.episode.steps[-1].fields)


@pytest.mark.parametrize(
    ("reply", "completed"),
    [("10", True), ("<think>…</think><answer>10</answer>", True), ('{"answer": "10"}', True), ("it is 10", False)],
)
def test_an_answer_is_scored_whole(usual_servers: str, reply: str, completed: bool) -> None:
    """A part of the score earns a reward, and completes nothing."""
    played = play(f"{usual_servers}/reasoning", reply)
    assert played.episode.completed is completed
    assert "How many legs" in played.prompts[0] and "answer" in played.system


def test_several_fields_are_asked_as_one_object(usual_servers: str) -> None:
    form = form_at(f"{usual_servers}/form")
    assert (form.kind, form.required) == (ActionKind.OBJECT, ("op", "times"))
    played = play(f"{usual_servers}/form", "UP", '{"op": "UP", "times": 2}', '{"op": "UP", "times": 2, "loud": true}')
    assert '"required": ["op", "times"]' in played.system
    assert [step.format_failure for step in played.episode.steps] == [True, False, False]
    assert [step.fields.get("result") for step in played.episode.steps] == [None, "up up", "UP UP"]


def test_a_refusal_that_ends_the_session_is_the_models(usual_servers: str) -> None:
    played = play(f"{usual_servers}/form", '{"op": "UP", "times": 9}')
    assert (played.episode.completed, played.episode.invalid_actions, len(played.episode.steps)) == (False, 1, 1)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("maze", "`action` of its actions takes a whole number"),
        ("grid", "`action` of its actions takes one of UP, DOWN, LEFT, RIGHT"),
        ("coding", "`code` of its actions takes code"),
        ("reasoning", "`answer` of its actions takes a text, no command"),
        ("form", "`op`"),
        ("echo", "no field that a command alone could be meant for"),
    ],
)
def test_commands_do_not_fit_these_servers(usual_servers: str, kind: str, reason: str) -> None:
    with pytest.raises(UnknownAction, match=reason):
        form_at(f"{usual_servers}/{kind}").for_commands(is_named=False)
