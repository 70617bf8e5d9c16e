"""The metrics that two models are compared by, of each kind of evaluation: their words, units and direction."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from curation.evaluations.models import EvaluationKind

Unit = Literal["share", "seconds", "characters", "steps", "points"]
SHOWN: Mapping[Unit, tuple[str, str, float]] = MappingProxyType(
    {
        "share": (".0f", "%", 100.0),
        "seconds": (".2f", " s", 1.0),
        "characters": (".0f", "", 1.0),
        "steps": (".1f", "", 1.0),
        "points": (".2f", "", 1.0),
    }
)
CHANGED: Mapping[Unit, tuple[str, str, float]] = MappingProxyType(
    {
        "share": ("+.1f", " pp", 100.0),
        "seconds": ("+.2f", " s", 1.0),
        "characters": ("+.0f", " chars", 1.0),
        "steps": ("+.1f", " steps", 1.0),
        "points": ("+.2f", "", 1.0),
    }
)


@dataclass(frozen=True, slots=True)
class Metric:
    """`rate`: each row has it or has it not, so McNemar's test applies. `better`: 1 more is better, -1 less is, 0
    neither. `tiers`: also compared tier by tier."""

    name: str
    label: str
    title: str
    unit: Unit = "share"
    rate: bool = True
    better: int = 1
    tiers: bool = True

    def amount(self, value: float) -> str:
        form, unit, scale = SHOWN[self.unit]
        return f"{value * scale:{form}}{unit}"

    def signed(self, value: float) -> str:
        form, unit, scale = CHANGED[self.unit]
        return f"{value * scale:{form}}{unit}"

    @property
    def decimals(self) -> int:
        """Of the figure in files: shares are small."""
        return 4 if self.unit == "share" else 2


STATIC = (
    Metric("fmt", "fmt", "The answer is a command and nothing else"),
    Metric("xtr", "+xtr", "A command can be extracted"),
    Metric("exact", "exact", "The extracted command equals the expected one as a string"),
    Metric("svc", "svc", "The same service (word 1)"),
    Metric("op_token", "op", "The same operation (word 2), as the published figures count it"),
    Metric("service_and_op", "svc+op", "The same service and operation"),
    Metric("exact_shell", "shell", "Equal as a shell reads it, flags in any order"),
    Metric("lat", "latency", "Mean per answer", "seconds", rate=False, better=-1, tiers=False),
    Metric("len", "length", "Mean per answer", "characters", rate=False, better=0, tiers=False),
)
LIVE = (
    Metric("completed", "completed", "The task was achieved"),
    Metric("max_progress", "progress", "The furthest that each episode came", rate=False),
    Metric("terminal_reward", "last reward", "Reward of the last step", "points", rate=False),
    Metric("total_reward", "summed reward", "Summed over the episode; it can pay for stalling", "points", rate=False),
    Metric("steps", "steps", "Steps of each episode, completed or not", "steps", rate=False, better=-1),
    Metric("hinted", "hints", "A hint was asked for", better=-1, tiers=False),
)


@dataclass(frozen=True, slots=True)
class Scale:
    """How a kind is compared: `moved` is the metric whose change makes a gain or a loss; `gained` and `lost` say it."""

    metrics: tuple[Metric, ...]
    moved: str
    unit: str
    gained: str
    lost: str


SCALES: Mapping[str, Scale] = MappingProxyType(
    {
        EvaluationKind.STATIC.value: Scale(STATIC, "exact", "rows", "exact now, not before", "exact before, not now"),
        EvaluationKind.LIVE.value: Scale(
            LIVE, "completed", "episodes", "completed now, not before", "completed before, not now"
        ),
    }
)
