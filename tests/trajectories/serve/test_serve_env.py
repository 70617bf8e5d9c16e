"""The admitted scenarios of a project, played over OpenEnv by our client and by that of openenv-core."""

import asyncio
import json
import threading
from typing import Any

import httpx
import pytest
from django.core.management import CommandError
from websockets.asyncio.client import connect

from curation.projects.models import Project
from curation.scenarios.models import Scenario
from curation.trajectories.management.commands.serve_env import make_server
from sandbox.agent.openenv import OpenEnvEnvironment, action_form_of
from sandbox.errors import EnvironmentFull, SandboxFailed
from tests.factories import make_project, make_scenario, make_trajectory
from tests.sandbox.fake import FakeBackend, FakeSession
from tests.trajectories.rolling import SOLVES
from tests.trajectories.serve.serving import OPTIONS, serve

pytestmark = pytest.mark.django_db(transaction=True)


async def environment(url: str, **reset: object) -> OpenEnvEnvironment:
    return OpenEnvEnvironment(url, reset=reset, form=await action_form_of(url))


def test_our_client_solves_a_scenario_by_its_name(project: Project, rooms: FakeBackend) -> None:
    async def play(url: str) -> None:
        played = await environment(url, name="wave")
        opening = await played.reset()
        assert "Work is announced by: todo" in opening.text
        steps = [await played.step(command) for command in SOLVES]
        assert [(step.reward, step.done) for step in steps] == [(0.0, False)] * 3 + [(1.0, True)]
        assert "usage: todo" in steps[0].observation.text
        state = (await played.about_task())["state"]
        assert isinstance(state, dict)
        assert (state["scenario"], state["step_count"], state["outcome"]) == ("wave", 4, "solved")
        assert state["version"] == digest
        over = await played.step("ls")
        assert over.refused and "reset first" in over.observation.text
        await played.close()

    digest = Scenario.objects.get(name="wave").bundle_sha256
    serve(play)
    assert all(session.closed for session in rooms.sessions)


def test_the_client_of_openenv_plays_one_episode_after_the_other(project: Project) -> None:
    from openenv.core.generic_client import GenericEnvClient

    async def play(url: str) -> None:
        async with GenericEnvClient(base_url=url) as client:
            shown, again = await client.reset(seed=3), await client.reset(seed=3)
            assert shown.observation["scenario"] == again.observation["scenario"]
            result = await client.step({"command": "```sh\nexit\n```"})
            assert (result.reward, result.done) == (0.0, True)
            assert (await client.state())["outcome"] == "checker_failed"
            await client.reset(task_id="greet")
            results = [await client.step({"command": "ls"}) for _ in range(6)]
            assert [result.done for result in results] == [False] * 5 + [True]
            assert (await client.state())["outcome"] == "no_terminal"

    serve(play)


def test_a_scenario_that_is_not_admitted_is_refused(project: Project) -> None:
    async def play(url: str) -> None:
        with pytest.raises(SandboxFailed, match="No scenario 'draft' is served"):
            await (await environment(url, name="draft")).reset()
        await asyncio.to_thread(edit)
        with pytest.raises(SandboxFailed, match="was edited or is no longer admitted"):
            await (await environment(url, name="wave")).reset()

    def edit() -> None:
        Scenario.objects.filter(name="wave").update(status="draft")

    serve(play)


def test_as_many_sockets_as_sandboxes_are_open_at_once(project: Project) -> None:
    async def play(url: str) -> None:
        first, second, third = [await environment(url, seed=1) for _ in range(3)]
        await first.reset()
        await second.reset()
        with pytest.raises(EnvironmentFull):
            await third.reset()
        await first.close()
        await until_served(third)
        await asyncio.gather(second.close(), third.close())

    serve(play)


async def until_served(played: OpenEnvEnvironment) -> None:
    """Reset when another session has ended, which the server learns after the client."""
    for _ in range(300):
        try:
            await played.reset()
            return
        except EnvironmentFull:
            await asyncio.sleep(0.1)
    pytest.fail("no session ended within 30 s")


BAD_MESSAGES: list[tuple[str | bytes, str]] = [
    ("{", "INVALID_JSON"),
    (b"\xff", "INVALID_JSON"),
    ("[" * 100_000, "INVALID_JSON"),
    ("[]", "UNKNOWN_TYPE"),
    ('{"type": "fly"}', "UNKNOWN_TYPE"),
    ('{"type": "reset", "data": []}', "VALIDATION_ERROR"),
    ('{"type": "reset", "data": {"name": ["wave"]}}', "VALIDATION_ERROR"),
    ('{"type": "reset", "data": {"name": "draft"}}', "VALIDATION_ERROR"),
    ('{"type": "reset", "data": {"seed": "3"}}', "VALIDATION_ERROR"),
    ('{"type": "step", "data": {}}', "VALIDATION_ERROR"),
    ('{"type": "step", "data": {"command": 5}}', "VALIDATION_ERROR"),
    ('{"type": "step", "data": {"command": "\\ud800"}}', "VALIDATION_ERROR"),
    ('{"type": "step", "data": {"command": ""}}', "VALIDATION_ERROR"),
]


def test_bad_messages_are_refused_and_the_episode_goes_on(project: Project) -> None:
    async def play(url: str) -> None:
        async with connect(url.replace("http", "ws") + "/ws", proxy=None) as socket:

            async def ask(message: str | bytes) -> dict[str, Any]:
                await socket.send(message)
                found: dict[str, Any] = json.loads(await socket.recv())
                return found

            assert "Reset first." in (await ask('{"type": "step", "data": {"command": "ls"}}'))["data"]["message"]
            await ask('{"type": "reset", "data": {"name": "wave"}}')
            await ask('{"type": "step", "data": {"command": "todo --help"}}')
            assert [((await ask(bad))["data"]["code"]) for bad, _ in BAD_MESSAGES] == [code for _, code in BAD_MESSAGES]
            state = (await ask('{"type": "state"}'))["data"]
            assert (state["scenario"], state["step_count"]) == ("wave", 1)
            await ask(json.dumps({"type": "step", "data": {"command": SOLVES[2]}}))
            assert (await ask('{"type": "step", "data": {"command": "exit"}}'))["data"]["reward"] == 1.0

    serve(play)


def test_the_sandbox_of_a_client_that_goes_away_is_removed(project: Project, rooms: FakeBackend) -> None:
    """It goes in the middle of a command, and the only seat is free when the command has ended."""
    begun, goes_on = threading.Event(), threading.Event()

    async def play(url: str) -> None:
        async with connect(url.replace("http", "ws") + "/ws", proxy=None) as socket:
            await socket.send('{"type": "reset", "data": {"name": "wave"}}')
            await socket.recv()
            await socket.send('{"type": "step", "data": {"command": "sleep"}}')
            await asyncio.to_thread(begun.wait, 30)
            socket.transport.abort()
        other = await environment(url, name="greet")
        with pytest.raises(EnvironmentFull):
            await other.reset()
        goes_on.set()
        await until_served(other)
        assert rooms.sessions[0].closed
        await other.close()

    def answers(session: FakeSession, command: str) -> str:
        begun.set()
        goes_on.wait(30)
        return ""

    rooms.answers = answers
    serve(play, sessions=1)


def test_a_broken_sandbox_is_no_step(project: Project, rooms: FakeBackend) -> None:
    async def play(url: str) -> None:
        played = await environment(url, seed=1)
        await played.reset()
        with pytest.raises(SandboxFailed, match="went away"):
            await played.step("todo")
        await played.close()

    rooms.answers = lambda session, command: SandboxFailed("went away")
    serve(play)


def test_documents_say_what_is_served(project: Project) -> None:
    async def play(url: str) -> None:
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            about = (await client.get("/metadata")).json()
            assert (about["name"], about["scenarios"], len(about["version"])) == ("winnow/acme", ["greet", "wave"], 64)
            assert (await client.get("/health")).json() == {"status": "healthy"}
            assert (await client.get("/elsewhere")).status_code == 404
            assert "hello world" not in str(about)

    serve(play)


def test_another_version_than_the_required_one_is_not_served(project: Project) -> None:
    version = make_server(OPTIONS).tasks.version
    assert make_server({**OPTIONS, "require": version}).tasks.version == version
    Scenario.objects.filter(name="wave").update(bundle_sha256="0" * 64)
    with pytest.raises(CommandError, match="have version"):
        make_server({**OPTIONS, "require": version})


def test_a_project_without_an_admitted_scenario_is_not_served(rooms: FakeBackend) -> None:
    make_project("acme")
    with pytest.raises(CommandError, match="No scenario is admitted"):
        make_server(OPTIONS)


def test_scenarios_of_the_right_difficulty_are_served(project: Project) -> None:
    """Half of the rollouts of one were kept, all of the other's; nobody has tried the third."""
    make_scenario(project, "new")
    greet, wave = (Scenario.objects.get(name=name) for name in ("greet", "wave"))
    make_trajectory(project, greet)
    make_trajectory(project, greet, outcome="checker_failed")
    make_trajectory(project, wave)
    assert make_server({**OPTIONS, "rate_from": 0.2, "rate_to": 0.8}).tasks.names == ["greet"]
    assert make_server({**OPTIONS, "rate_from": 0.5}).tasks.names == ["greet", "wave"]
    assert make_server(OPTIONS).tasks.names == ["greet", "new", "wave"]
    with pytest.raises(CommandError, match="kept rate from 0 to 0.1"):
        make_server({**OPTIONS, "rate_to": 0.1})
