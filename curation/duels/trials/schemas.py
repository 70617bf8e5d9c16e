"""Responses of trials of judges, and the result that a run keeps."""

from datetime import datetime
from typing import Any

from pydantic import Field, computed_field

from curation.web.schemas import Id, Out


class IntervalOut(Out):
    low: float = Field(examples=[0.71])
    high: float = Field(examples=[0.9])


class KappaOut(Out):
    kappa: float | None = Field(examples=[0.61], description="Cohen's κ; null where only one choice occurs.")
    interval: IntervalOut | None = Field(description="95 %.")


class RightnessOut(Out):
    """`right` of the `n` duels that parsed under both texts have the known outcome."""

    n: int
    right: int
    accuracy: float | None
    interval: IntervalOut = Field(description="95 %; the duels of one task are taken together.")
    kappa: KappaOut


class ChangeOut(Out):
    delta: float = Field(examples=[0.08], description="Accuracy after, less that before.")
    interval: IntervalOut = Field(description="95 %, by a bootstrap of tasks.")
    p: float = Field(examples=[0.03], description="Of no change, by a sign-flip test over tasks.")


class ComparedOut(Out):
    known: int = Field(description="Duels with a known outcome in this part.")
    before: RightnessOut
    after: RightnessOut
    change: ChangeOut | None


class JudgeTrialOut(Out):
    """A text for a judge (`after`) against the text in force at its launch (`before`)."""

    run: Id = Field(validation_alias="pk")
    params: dict[str, Any] = Field(exclude=True)
    result: dict[str, Any] = Field(exclude=True)
    created_at: datetime

    @computed_field
    def judge(self) -> str:
        return str(self.params["model"])

    @computed_field
    def part(self) -> str:
        """`tune` or `held_out`."""
        return str(self.params["part"])

    @computed_field
    def texts(self) -> dict[str, str]:
        """The SHA-256 of both texts, `before` and `after`."""
        return dict(self.result["texts"])

    @computed_field
    def people(self) -> ComparedOut:
        """By duels that people decided."""
        return ComparedOut.model_validate(self.result["people"])

    @computed_field
    def controls(self) -> ComparedOut:
        """By control duels, without bribes."""
        return ComparedOut.model_validate(self.result["controls"])

    @computed_field
    def tried(self) -> int:
        """Texts of the judge that were measured on the held-out part, this one included; 0 of a tuning part."""
        return int(self.result["tried"])


class TrialPartsOut(Out):
    """Duels with a known outcome. Each task is in one part for ever."""

    tune: int
    held_out: int
    tune_tasks: int
    held_out_tasks: int
