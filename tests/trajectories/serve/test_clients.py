"""TRL and verifiers play the served scenarios with their own clients. `make consumers` installs them."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from curation.projects.models import Project
from tests.exports.consumers.tiny_model import write_tokenizer
from tests.sandbox.fake import FakeBackend
from tests.trajectories.serve.serving import serve

INSTALLED = Path(sys.prefix) / "consumers"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(600), pytest.mark.slow, pytest.mark.embedded]


def play(client: str, folder: Path, **options: Any) -> dict[str, Any]:
    """Return what the client saw."""
    if not (INSTALLED / "verifiers").exists():
        if os.environ.get("CI"):
            pytest.fail("the clients are not installed: make consumers")
        pytest.skip("the clients are not installed: make consumers")
    root = Path(__file__).parents[3]
    path = {"PYTHONPATH": f"{root}{os.pathsep}{INSTALLED}", "HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    seen: dict[str, Any] = {}

    async def run(address: str) -> None:
        command = [sys.executable, "-m", "tests.trajectories.serve.clients", client, address, str(folder)]
        pipe = asyncio.subprocess.PIPE
        child = await asyncio.create_subprocess_exec(
            *command, cwd=folder, env=os.environ | path, stdout=pipe, stderr=pipe
        )
        said, complained = await child.communicate()
        assert child.returncode == 0, complained.decode()[-4000:]
        seen.update(json.loads(said.splitlines()[-1]))

    serve(run, **options)
    return seen


def test_grpo_of_trl_rolls_out_in_served_scenarios(project: Project, rooms: FakeBackend, tmp_path: Path) -> None:
    seen = play("trl", write_tokenizer(tmp_path / "tiny"))
    assert sorted(seen["rewards"]) == [0.0, 1.0]
    assert seen["reward"] == 0.5 and seen["grad_norm"] > 0
    assert "Work is announced by: todo" in seen["prompts"][0]
    assert "usage: todo" in seen["prompts"][2]
    assert sorted(len(session.commands) for session in rooms.sessions) == [0, 3]
    assert all(session.closed for session in rooms.sessions)


def test_verifiers_plays_by_name_and_seed_and_as_many_as_it_may(
    project: Project, rooms: FakeBackend, tmp_path: Path
) -> None:
    seen = play("verifiers", tmp_path)
    named = seen["named"]
    assert named["rewards"] == {"openenv_reward": 1.0}
    assert [shown["observation"]["scenario"] for shown in named["shown"]] == ["wave"] * 4
    assert "usage: todo" in named["shown"][1]["observation"]["output"]
    assert named["shown"][0]["action_schema"]["required"] == ["command"]
    first, second = seen["seeded"]
    assert first == second and first["rewards"] == {"openenv_reward": 0.0}
    assert "No scenario 'draft' is served" in seen["unknown"]["refused"]
    full = [one["refused"] for one in seen["at_once"] if "refused" in one]
    played = [one["rewards"] for one in seen["at_once"] if "rewards" in one]
    assert len(full) >= 1 and all(
        "2 sessions are open; try again later. (code: CAPACITY_REACHED)" in one for one in full
    )
    assert len(played) >= 2 and all(one == {"openenv_reward": 1.0} for one in played)
    assert all(session.closed for session in rooms.sessions)
