"""The environment of an agent: our own shell, or an OpenEnv server elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Observation:
    """`text` is shown to the agent; `fields` is everything the environment returned, for traces and figures."""

    text: str
    fields: Mapping[str, object] = field(default_factory=dict)

    def observed(self, names: Sequence[str]) -> object:
        """Return the first of these fields that has a value, else None."""
        return next((self.fields[name] for name in names if self.fields.get(name) is not None), None)


@dataclass(frozen=True)
class EnvironmentStep:
    """The result of one action. `reward` is None if the environment returned none; `done` ends the episode.

    `refused`: the environment did not take the action, and says why in its observation. `doubt` is how it failed at an
    action that it took, in words: the action may be the cause, or the environment. After `lost` there is no next step.
    An action that `hangs` may still hold its session.
    """

    observation: Observation
    reward: float | None
    done: bool
    info: Mapping[str, object] = field(default_factory=dict)
    refused: bool = False
    doubt: str = ""
    lost: bool = False
    hangs: bool = False


class Environment(Protocol):
    """One episode. Capacity, connection and sandbox errors are `SandboxError`s: tried again, never scored."""

    async def reset(self) -> Observation: ...

    async def about_task(self) -> Mapping[str, object]:
        """Return the server's `info` and state after the reset. They are compared with the requested task and never
        shown to an agent."""
        ...

    async def instructions(self) -> str:
        """Return the text that tells an agent the form of its actions; empty if none is needed."""
        ...

    async def step(self, action: str) -> EnvironmentStep: ...

    async def confirm_failure(self, doubt: str, actions: Sequence[str], *, is_up: bool) -> None:
        """Raise `SandboxFailed` with the doubt unless the last of these actions fails again in a new episode, after the
        others, and the environment executes another one: one of ours, unless it `is_up` for having executed a later one
        of the agent's. Without actions nothing is tried again. The agent's episode is over then."""
        ...

    async def close(self) -> None:
        """Release the episode's resources; may be called again, and during a step."""
