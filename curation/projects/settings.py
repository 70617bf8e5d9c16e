"""A project's settings: one typed document, checked whenever it is written, stored as JSON."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Points = Annotated[float, Field(ge=0.0, le=100.0)]


class Section(BaseModel):
    """Unknown keys are refused: a misspelt setting must not pass for a default."""

    model_config = ConfigDict(extra="forbid")


class Thresholds(Section):
    """Bucket edges in points of the duel score: `final` from the first on, `refined` from the second on."""

    final: Points = 80.0
    refined: Points = 66.0

    @model_validator(mode="after")
    def in_order(self) -> "Thresholds":
        if self.refined > self.final:
            raise ValueError("`refined` must not lie above `final`")
        return self


class Panel(Section):
    """Who judges by default, and how."""

    judges: list[str] = []
    swap: bool = True
    min_judges: Annotated[int, Field(ge=1)] | None = None
    attempts: Annotated[int, Field(ge=1, le=10)] = 3
    max_tokens: Annotated[int, Field(ge=16, le=131_072)] = 1024
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] = 0.0
    show_reference: bool = False
    mode: Literal[1, 2] = 2
    weights: dict[str, Annotated[float, Field(ge=0.0)]] = {}


class Generation(Section):
    """How king and challenger answer by default."""

    king_model: str = ""
    challenger_model: str = ""
    max_tokens: Annotated[int, Field(ge=16, le=131_072)] = 2048
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] = 0.7


class Gate(Section):
    """When a run's challenger is accepted (`judging.gate`)."""

    min_parsed: Share = 0.5
    win_margin: float = 2.0
    resamples: Annotated[int, Field(ge=100, le=1_000_000)] = 10_000
    seed: int = 0
    cluster: bool = True


class Review(Section):
    """How people decide."""

    blind: bool = True
    advance: bool = True
    lease_seconds: Annotated[int, Field(ge=30, le=3600)] = 300
    reasons: list[str] = ["wrong", "leaks", "invented facts", "repeats itself", "format", "unsafe", "too costly"]


class Limits(Section):
    """`max_patch_tokens`: a larger pull request is excluded. `max_leak`: a leak score above it raises the flag."""

    max_patch_tokens: Annotated[int, Field(ge=1)] = 32_768
    max_leak: Share = 0.34


class Balance(Section):
    """Share of `panic` terminals an export may hold before it warns."""

    panic_low: Share = 0.05
    panic_high: Share = 0.5


class ProjectSettings(Section):
    thresholds: Thresholds = Thresholds()
    panel: Panel = Panel()
    generation: Generation = Generation()
    gate: Gate = Gate()
    review: Review = Review()
    limits: Limits = Limits()
    balance: Balance = Balance()
