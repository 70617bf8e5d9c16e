"""What an agent acts in, whatever stands behind it: our own shell, or a server elsewhere that speaks OpenEnv."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Observation:
    """`text` is what the agent is shown; `fields` is all that the environment gave, for traces and figures."""

    text: str
    fields: Mapping[str, object] = field(default_factory=dict)

    def observed(self, names: Sequence[str]) -> object:
        """The first of these fields that is there; None without one."""
        return next((self.fields[name] for name in names if self.fields.get(name) is not None), None)


@dataclass(frozen=True)
class Step:
    """What came of one action. `reward` is None where the environment gave none; `done` ends the episode."""

    observation: Observation
    reward: float | None
    done: bool
    info: Mapping[str, object] = field(default_factory=dict)


class Environment(Protocol):
    """One episode. Capacity, connection and sandbox errors are `SandboxError`s: infra, taken anew, never scored."""

    async def reset(self) -> Observation: ...

    async def step(self, action: str) -> Step: ...

    async def close(self) -> None:
        """Gives back what the episode held; may be called again, and while a step is under way."""
