"""Live episodes against a server that is written with openenv-core's own classes, over real sockets."""

import asyncio
from collections.abc import Sequence

import pytest

from sandbox.agent import openenv
from sandbox.agent.action_form import ActionForm, ActionKind
from sandbox.agent.environment import visible_text
from sandbox.agent.episode import Message, ModelReply
from sandbox.agent.live import LiveEpisode, LivePrompt, Rules, run_live_episode
from sandbox.agent.openenv import OpenEnvEnvironment, action_form_of
from sandbox.agent.reported_task import AskedTask
from sandbox.errors import EnvironmentFull, SandboxFailed
from tests.sandbox.shop import shop_server, start_shop
from tests.serving import free_port

__all__ = ["shop_server"]

PROMPT = LivePrompt("You keep a shop.", "TASK: {task}\nStep: {step}\n{output}\n{error}\n{reward}\n{history}")


def read(reply: str) -> str | None:
    return reply if reply.startswith("shop ") else None


SEED = AskedTask(known=False)
COMMAND = ActionForm(ActionKind.COMMAND, {"command": {"type": "string"}}, ("command",), main="command")
RULES = Rules(read=read, fallback="shop help", asks_hint=lambda command: "--task-hint" in command)


def play(
    url: str, replies: Sequence[str], *, seconds: float = 20.0, max_steps: int = 15, **reset: object
) -> LiveEpisode:
    """An episode whose model says `replies` one after the other, and the last one for ever."""
    left = list(replies)

    async def complete(messages: Sequence[Message]) -> ModelReply:
        asked.append(str(messages))
        return ModelReply(left.pop(0) if len(left) > 1 else left[0])

    async def episode() -> LiveEpisode:
        environment = OpenEnvEnvironment(url, reset=reset, form=COMMAND, seconds=seconds)
        try:
            return await run_live_episode(
                environment=environment, complete=complete, prompt=PROMPT, rules=RULES, max_steps=max_steps, asked=SEED
            )
        finally:
            await environment.close()

    asked.clear()
    return asyncio.run(episode())


asked: list[str] = []


def test_a_whole_episode(shop_server: str) -> None:
    episode = play(shop_server, ["shop add"], seed=3)
    assert (episode.completed, len(episode.steps), episode.tier) == (True, 3, "expert")
    assert [step.reward for step in episode.steps] == [0.2, 0.2, 1.0]
    assert (episode.terminal_reward, round(episode.total_reward or 0, 6)) == (1.0, 1.4)
    assert episode.task == "Put 3 things on the shelf."
    assert "1. shop add\n2. shop add" in asked[-1].replace("\\n", "\n")


def test_no_field_of_an_observation_is_lost_and_none_that_scores_is_shown(shop_server: str) -> None:
    episode = play(shop_server, ["shop add"])
    assert episode.steps[0].fields["shelf"] == {"things": 1, "expected_things": "SECRET-CRITERION"}
    assert "SECRET-CRITERION" not in "".join(asked)
    assert visible_text(episode.steps[0].fields).count("shelf.things: 1") == 1
    assert "SECRET-CRITERION" not in visible_text(episode.steps[0].fields)


def test_hints_and_replies_without_a_command_are_counted(shop_server: str) -> None:
    episode = play(shop_server, ["shop help --task-hint", "I would look around.", "shop add", "shop add"])
    assert episode.hinted
    assert episode.format_failures == 1
    assert [step.action for step in episode.steps][1] == "shop help"
    assert [step.hint for step in episode.steps] == [True, False, False, False]


def test_the_most_progress_counts(shop_server: str) -> None:
    episode = play(shop_server, ["shop add", "shop add", "shop add", "shop lose", "shop lose"], seed=4, max_steps=5)
    assert (episode.completed, episode.max_progress, episode.steps[-1].progress) == (False, 0.75, 0.25)


def test_a_full_server_is_told_from_a_broken_one(shop_server: str) -> None:
    async def three() -> list[object]:
        open_ones = [OpenEnvEnvironment(shop_server, reset={}, form=COMMAND) for _ in range(3)]
        try:
            return [await _outcome(environment) for environment in open_ones]
        finally:
            for environment in open_ones:
                await environment.close()

    async def _outcome(environment: OpenEnvEnvironment) -> object:
        try:
            return await environment.reset()
        except SandboxFailed as failed:
            return type(failed)

    outcomes = asyncio.run(three())
    assert outcomes[2] is EnvironmentFull
    assert EnvironmentFull not in outcomes[:2]


@pytest.mark.parametrize(("task_id", "words"), [("stumbles", "the shelf is locked"), ("naps", "did not answer a step")])
def test_an_error_that_does_not_come_again_is_the_servers(shop_server: str, task_id: str, words: str) -> None:
    """The model cannot be blamed, also where the episode went on after it. The next try of the episode is whole."""
    with pytest.raises(SandboxFailed, match=f"{words} .*does not fail a second time"):
        play(shop_server, ["shop add"], task_id=task_id, seconds=1.0)
    episode = play(shop_server, ["shop add"], task_id=task_id)
    assert (episode.completed, episode.invalid_actions) == (True, 0)


def test_a_server_that_fails_in_every_other_session_blames_no_action(shop_server: str) -> None:
    with pytest.raises(SandboxFailed, match="the shelf is locked .*does not fail a second time"):
        play(shop_server, ["shop add"], task_id="odd")


@pytest.mark.parametrize(
    ("task_id", "words"),
    [
        ("breaks", "the shelf fell down"),
        ("breaks late", "the shelf fell down"),
        ("hangs", "did not answer a step within 1 s"),
    ],
)
def test_what_goes_wrong_on_the_server_is_infra(
    shop_server: str, monkeypatch: pytest.MonkeyPatch, task_id: str, words: str
) -> None:
    monkeypatch.setattr(openenv, "CLOSE_SECONDS", 0.2)
    with pytest.raises(SandboxFailed, match=words):
        play(shop_server, ["shop add"], task_id=task_id, seconds=1.0)


def test_a_step_before_the_reset_is_infra(shop_server: str) -> None:
    with pytest.raises(SandboxFailed, match="before the reset"):
        asyncio.run(OpenEnvEnvironment(shop_server, reset={}, form=COMMAND).step("shop add"))


def test_a_dropped_socket_and_a_server_that_is_not_there_are_infra() -> None:
    port = free_port()
    process = start_shop(port)
    with pytest.raises(SandboxFailed, match="step"):
        play(f"ws://127.0.0.1:{port}", ["shop add"], task_id="drops")
    process.join(10)
    assert process.exitcode == 1
    with pytest.raises(SandboxFailed, match="reset"):
        play(f"ws://127.0.0.1:{port}", ["shop add"])


def test_the_field_of_the_command_is_read_from_the_servers_schema(shop_server: str) -> None:
    form = asyncio.run(action_form_of(shop_server)).for_commands(is_named=False)
    assert (form.kind, form.main, form.payload("shop add")) == (ActionKind.COMMAND, "command", {"command": "shop add"})
