from datetime import datetime

from pydantic import Field

from curation.web.schemas import Id, Out
from judging.statistics.rates import Interval


class KappaOut(Out):
    kappa: float | None = Field(examples=[0.61], description="Cohen's κ; null where only one choice occurs.")
    interval: Interval | None = Field(description="95 %.")


class RightnessOut(Out):
    """`right` of the `n` duels that parsed under both texts have the known outcome."""

    n: int
    right: int
    accuracy: float | None
    interval: Interval = Field(description="95 %; the duels of one task are taken together.")
    kappa: KappaOut


class AccuracyChangeOut(Out):
    delta: float = Field(examples=[0.08], description="Accuracy after, less that before.")
    interval: Interval = Field(description="95 %, by a bootstrap of tasks.")
    p: float = Field(examples=[0.03], description="Of no change, by a sign-flip test over tasks.")


class ComparedOut(Out):
    known: int = Field(description="Duels with a known outcome in this part.")
    before: RightnessOut
    after: RightnessOut
    change: AccuracyChangeOut | None


class JudgeTrialOut(Out):
    """A text for a judge (`after`) against the text in force at its launch (`before`)."""

    run: Id = Field(validation_alias="pk")
    judge: str = Field(validation_alias="params.model")
    part: str = Field(validation_alias="params.part", description="`tune` or `held_out`.")
    texts: dict[str, str] = Field(validation_alias="result.texts", description="The SHA-256 of both texts.")
    people: ComparedOut = Field(validation_alias="result.people", description="By duels that people decided.")
    controls: ComparedOut = Field(validation_alias="result.controls", description="By control duels, without bribes.")
    tried: int = Field(
        validation_alias="result.tried",
        description="Texts of the judge that were measured held out, this one included; 0 of a part to tune by.",
    )
    created_at: datetime
