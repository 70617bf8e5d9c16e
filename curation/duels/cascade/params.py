from pydantic import Field

from curation.duels.params import JudgeParams


class CascadeParams(JudgeParams):
    """`judges` is the full panel, to which `model`, the judge that reads first, belongs."""

    model: str = Field(description="The judge that reads every duel, usually the cheapest.")
    size: int = Field(150, ge=1, le=5_000, description="Duels, drawn at random, that the full panel also reads.")
    alpha: float = Field(
        0.05, ge=0.001, le=0.5, description="The tolerated share of duels that would have another bucket by all judges."
    )
    delta: float = Field(
        0.05, ge=0.001, le=0.5, description="The chance that the promise is wrong: 0.05 is 95 % confidence."
    )
    seed: int = Field(0, description="Set at launch: of the draw.")
