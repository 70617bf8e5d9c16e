"""A stand-in for the AWS environment that the measured models were trained in, written with openenv-core's classes.

As the real one, a `stubborn` server ignores `task_id`, takes a whole `task`, otherwise plays a random warm-up task of a
curriculum that is new for each socket, has room for one episode, and answers 500 to a stateless step. A server that
`honours` ids plays the task with this id; a `silent` one says nothing of its task; one that `echoes` repeats the id it
was sent beside another text. The log gets a line for each reset and step.
"""

import json
import random
from pathlib import Path
from typing import Any
from uuid import uuid4

import uvicorn
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

from tests.sandbox.shop import CLOUD_TASKS as TASKS

HINT = "aws help --task-hint"
log_file, kind = Path(), "stubborn"


class CloudAction(Action):  # type: ignore[misc]  # openenv-core ships no types
    command: str


class CloudObservation(Observation):  # type: ignore[misc]
    command_output: str = ""
    error: str = ""
    task: dict[str, Any] | None = None
    task_id: str | None = None
    task_achieved: bool = False
    partial_progress: float = 0.0
    hints_used: int = 0


class CloudState(State):  # type: ignore[misc]
    current_task: dict[str, Any] | None = None


class Cloud(Environment[CloudAction, CloudObservation, CloudState]):  # type: ignore[misc]
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._task: dict[str, Any] | None = None
        self._sent: dict[str, Any] = {}
        self._episode = ""
        self._made = self._hints = self._steps = 0

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, task: Any = None, task_id: Any = None, **_: Any
    ) -> CloudObservation:
        self._sent, self._episode = {"task_id": task_id}, uuid4().hex
        self._made = self._hints = self._steps = 0
        if task is not None and kind != "silent":
            self._task = dict(task)
        elif kind in ("honours", "silent"):
            self._task = next(row for row in TASKS if str(row["task_id"]) == str(task_id))
        else:
            self._task = dict(random.choice([row for row in TASKS if row["difficulty"] == "warmup"]))  # noqa: S311
        return self._seen("reset", "Everything was wiped.", 0.0)

    def step(self, action: CloudAction, timeout_s: float | None = None, **_: Any) -> CloudObservation:
        assert self._task is not None, "a step before the reset"
        self._steps += 1
        if action.command == HINT:
            self._hints += 1
            return self._seen(action.command, "Make buckets.", 0.0)
        if action.command != "aws s3 mb":
            return self._seen(action.command, "", 0.05, error="unknown command")
        self._made += 1
        return self._seen(action.command, f"{self._made} buckets", 1.0 if self._achieved else 0.3)

    @property
    def _wanted(self) -> int:
        return int((self._task or {})["success_criteria"]["buckets"])

    @property
    def _achieved(self) -> bool:
        return self._made >= self._wanted

    def _seen(self, command: str, output: str, reward: float, error: str = "") -> CloudObservation:
        task = self._task or {}
        achieved = self._steps > 0 and self._achieved
        line = {"episode": self._episode, "task_id": task["task_id"], "command": command, "reward": reward}
        with log_file.open("a") as log:
            log.write(json.dumps({**line, "achieved": achieved, "hints": self._hints}) + "\n")
        shown = {name: task[name] for name in ("task_id", "difficulty", "description") if name in task}
        return CloudObservation(
            command_output=output,
            error=error,
            task=None if kind == "silent" else {"description": task["description"]} if kind == "echoes" else shown,
            task_id=str(self._sent["task_id"]) if kind == "echoes" else None,
            task_achieved=achieved,
            partial_progress=min(1.0, self._made / self._wanted),
            hints_used=self._hints,
            reward=reward,
            done=achieved,
        )

    @property
    def state(self) -> CloudState:
        return CloudState(step_count=self._steps, current_task=None if kind in ("silent", "echoes") else self._task)


def serve(port: int, log: Path, of_kind: str, most: int) -> None:
    global log_file, kind
    log_file, kind = log, of_kind
    app = create_app(Cloud, CloudAction, CloudObservation, env_name="cloud", max_concurrent_envs=most)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")
