"""Stand-ins for OpenEnv's own environments, written with openenv-core's classes: each behaves as the real one.

Each has a path: `echo` speaks MCP; `maze` takes a whole number and breaks at one that is no move; `grid` takes a choice
behind a `$ref` and shows coordinates beside `message`; `coding` takes Python; `reasoning` takes an answer, scores parts
of it and reveals the right one; `form` takes several fields and refuses with a validator of its own, which openenv-core
cannot send. `world` and `own` speak MCP too: by either of two actions, and by a class of its own, which lists no tools;
`bare` has no tools. `shell` says of each command that it succeeded.
"""

import contextlib
import io
import traceback
from enum import StrEnum
from typing import Any

import uvicorn
from fastapi import FastAPI
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field, field_validator

from tests.sandbox.tool_servers import Bare, Echo, OwnCall, WorldAction

SIZE = 3


class Direction(StrEnum):
    UP = "UP"
    DOWN = "DOWN"
    LEFT = "LEFT"
    RIGHT = "RIGHT"


class GridAction(Action):  # type: ignore[misc]  # openenv-core ships no types
    action: Direction = Field(..., description="The direction to move the agent.")


class GridObservation(Observation):  # type: ignore[misc]
    x: int
    y: int
    message: str = ""


class MazeAction(Action):  # type: ignore[misc]
    action: int


class MazeObservation(Observation):  # type: ignore[misc]
    legal_actions: list[int] = []
    current_position: list[int] = []


class CodeAction(Action):  # type: ignore[misc]
    code: str


class CodeObservation(Observation):  # type: ignore[misc]
    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0


class AnswerAction(Action):  # type: ignore[misc]
    answer: str = Field(..., description="The agent's answer to the current question")


class AnswerObservation(Observation):  # type: ignore[misc]
    question: str | None = None
    score: float | None = None
    correct_answer: str | None = None


class FormAction(Action):  # type: ignore[misc]
    op: Direction
    times: int
    loud: bool = False

    @field_validator("times")
    @classmethod
    def few(cls, times: int) -> int:
        assert times < 9, "too many times"
        return times


class FormObservation(Observation):  # type: ignore[misc]
    result: str = ""


class Usual(Environment[Any, Any, State]):  # type: ignore[misc]
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._steps = 0

    @property
    def state(self) -> State:
        return State(step_count=self._steps)


class Grid(Usual):
    """From [0, 0] to the last cell."""

    def reset(self) -> GridObservation:
        self._x = self._y = 0
        return GridObservation(x=0, y=0, message="Welcome.", reward=0.0)

    def step(self, action: GridAction) -> GridObservation:
        across, down = {"UP": (0, -1), "DOWN": (0, 1), "LEFT": (-1, 0), "RIGHT": (1, 0)}[action.action.value]
        self._x, self._y = (max(0, min(SIZE - 1, place)) for place in (self._x + across, self._y + down))
        done = self._x == self._y == SIZE - 1
        text = "You found the goal!" if done else "Keep going..."
        return GridObservation(x=self._x, y=self._y, message=text, reward=1.0 if done else -0.1, done=done)


class Maze(Usual):
    """A corridor of three cells: 2 is back, 3 is on; 0 and 1 are walls."""

    def reset(self, seed: int | None = None, **_: Any) -> MazeObservation:
        self._place = 0
        return self._seen(0.0)

    def step(self, action: MazeAction) -> MazeObservation:
        if action.action not in range(4):
            raise ValueError(f"{action.action} is not a valid Action")
        legal = action.action in self._legal()
        self._place += {2: -1, 3: 1}[action.action] if legal else 0
        return self._seen(10.0 if self._place == SIZE - 1 else -0.05 if legal else -0.75)

    def _legal(self) -> list[int]:
        return [3] if self._place == 0 else [2, 3]

    def _seen(self, reward: float) -> MazeObservation:
        done = self._place == SIZE - 1
        legal = [] if done else self._legal()
        return MazeObservation(current_position=[self._place, 0], legal_actions=legal, reward=reward, done=done)


class Coding(Usual):
    def reset(self) -> CodeObservation:
        self._names: dict[str, Any] = {}
        return CodeObservation()

    def step(self, action: CodeAction) -> CodeObservation:
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                exec(action.code, self._names)  # noqa: S102 - the tests' own code
        except Exception:
            return CodeObservation(
                stdout=out.getvalue(), stderr=traceback.format_exc(limit=0), exit_code=1, reward=-0.1
            )
        return CodeObservation(stdout=out.getvalue(), exit_code=0, reward=0.1)


class Reasoning(Usual):
    def reset(self, seed: int | None = None) -> AnswerObservation:
        return AnswerObservation(question="How many legs have 2 cats and a hen?", reward=0.0)

    def step(self, action: AnswerAction) -> AnswerObservation:
        score = 1.0 if action.answer == "10" else 0.2 if "10" in action.answer else 0.0
        return AnswerObservation(score=score, correct_answer="10", reward=score, done=True)


class Form(Usual):
    def reset(self) -> FormObservation:
        return FormObservation(result="ready")

    def step(self, action: FormAction) -> FormObservation:
        told = " ".join([action.op.value] * action.times)
        return FormObservation(result=told.lower() if not action.loud else told, reward=1.0, done=action.loud)


class ShellAction(Action):  # type: ignore[misc]
    command: str = ""
    action_type: str = "exec"


class ShellObservation(Observation):  # type: ignore[misc]
    output: str = ""
    success: bool = True


class Shell(Usual):
    """As a server of repositories: nothing but `submit` ends the task, and a right solution alone earns a reward."""

    def reset(self, **_: Any) -> ShellObservation:
        return ShellObservation(output="ready")

    def step(self, action: ShellAction) -> ShellObservation:
        done = action.command.startswith("submit")
        reward = float(action.command == "submit right") if done else None
        return ShellObservation(output=f"$ {action.command}", reward=reward, done=done)


KINDS: dict[str, tuple[Any, Any, Any]] = {
    "echo": (Echo, CallToolAction, CallToolObservation),
    "maze": (Maze, MazeAction, MazeObservation),
    "grid": (Grid, GridAction, GridObservation),
    "coding": (Coding, CodeAction, CodeObservation),
    "reasoning": (Reasoning, AnswerAction, AnswerObservation),
    "form": (Form, FormAction, FormObservation),
    "world": (Echo, WorldAction, CallToolObservation),
    "own": (Echo, OwnCall, CallToolObservation),
    "bare": (Bare, CallToolAction, CallToolObservation),
    "shell": (Shell, ShellAction, ShellObservation),
}


def serve(port: int) -> None:
    site = FastAPI()
    for kind, (environment, action, observation) in KINDS.items():
        site.mount(f"/{kind}", create_app(environment, action, observation, env_name=kind, max_concurrent_envs=4))
    uvicorn.run(site, host="127.0.0.1", port=port, log_level="error")
