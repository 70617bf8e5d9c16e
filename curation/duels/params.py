"""Parameters of the run kinds around duels. What is left out is taken from the project's settings at launch."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from judging.panel.rubric import DIMENSIONS

Samples = Annotated[int, Field(ge=1, le=16)]
Attempts = Annotated[int, Field(ge=1, le=10)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AnswerParams(Strict):
    """`king` and `challenger`: the endpoint's name, answers per prompt, tries per answer."""

    model: str
    samples: Samples = 1
    attempts: Attempts = 3
    filter: dict[str, Any] = {}
    fresh: bool = False


class JudgeParams(Strict):
    """`judge`: who judges and how; the king's and challenger's models narrow which answers meet."""

    judges: list[str] | None = None
    swap: bool | None = None
    mode: Literal[1, 2] | None = None
    attempts: Attempts | None = None
    min_judges: Annotated[int, Field(ge=1)] | None = None
    show_reference: bool | None = None
    king_model: str | None = None
    challenger_model: str | None = None
    filter: dict[str, Any] = {}
    fresh: bool = False


class DuelParams(JudgeParams):
    """`duel`: king, challenger and judge in a row."""

    samples: Samples = 1


class RescoreParams(Strict):
    """`rescore`: new scores from the verdicts that are there; no model is asked."""

    run: str | None = None
    judges: list[str] | None = None
    min_judges: Annotated[int, Field(ge=1)] | None = None
    weights: dict[str, Annotated[float, Field(ge=0.0, le=1000.0)]] | None = None
    filter: dict[str, Any] = {}

    @field_validator("weights")
    @classmethod
    def of_known_dimensions(cls, weights: dict[str, float] | None) -> dict[str, float] | None:
        """What is not named weighs 1, as in the project's settings."""
        if not weights:
            return None
        unknown = sorted(set(weights) - set(DIMENSIONS))
        if unknown:
            raise ValueError(f"unknown dimension {', '.join(unknown)}; there are {', '.join(DIMENSIONS)}")
        complete = {name: weights.get(name, 1.0) for name in DIMENSIONS}
        if not any(complete.values()):
            raise ValueError("at least one dimension must weigh more than 0")
        return complete
