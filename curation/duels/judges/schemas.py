"""Response schemas of judges."""

from dataclasses import asdict
from typing import Any

from ninja import Schema
from pydantic import Field

from curation.duels.judges.pages import JudgesView, JudgeView, PairView


class PeopleOut(Schema):
    """A judge's preferences against people's, over `n` duels that both decided."""

    n: int = Field(examples=[40])
    kappa: float | None = Field(examples=[0.61], description="Cohen's κ; null where only one choice occurs.")
    kappa_interval: list[float] | None = Field(examples=[[0.4, 0.82]], description="95 %.")
    accuracy: float | None = Field(examples=[0.8], description="Share of duels with the same choice.")


class JudgeOut(Schema):
    """One judge over the run."""

    name: str = Field(examples=["judge-a"])
    deleted: bool = Field(description="No model of the project has this name any more.")
    figures: dict[str, Any] = Field(
        description="As in `judges` of the run's `result`.",
        examples=[{"n": 500, "first_share": 0.71}],
    )
    people: PeopleOut
    cost_per_verdict: str | None = Field(
        examples=["0.0012"], description="Dollars of its own calls by verdict that parsed; null if unknown."
    )

    @staticmethod
    def of(judge: JudgeView) -> "JudgeOut":
        kappa = judge.people.kappa
        interval = None if kappa.interval is None else [kappa.interval.low, kappa.interval.high]
        return JudgeOut(
            name=judge.figures["name"],
            deleted=judge.deleted,
            figures={key: value for key, value in judge.figures.items() if key != "name"},
            people=PeopleOut(n=kappa.n, kappa=kappa.kappa, kappa_interval=interval, accuracy=judge.people.accuracy),
            cost_per_verdict=None if judge.per_verdict is None else f"{judge.per_verdict:f}",
        )


class TriedOut(Schema):
    """The gate of one challenger against one opponent, `before` as the run decided it."""

    challenger: dict[str, str] = Field(examples=[{"side": "challenger", "model": "b"}])
    opponent: dict[str, str] = Field(examples=[{"side": "king", "model": "a"}])
    before: dict[str, Any] = Field(examples=[{"margin": 6.0, "lcb": 2.1, "accepted": True}])
    after: dict[str, Any] = Field(examples=[{"margin": 1.0, "lcb": -2.4, "accepted": False}])

    @staticmethod
    def of(pair: PairView) -> "TriedOut":
        challenger, opponent = pair.challenger._asdict(), pair.opponent._asdict()
        return TriedOut(challenger=challenger, opponent=opponent, before=dict(pair.before), after=asdict(pair.after))


class JudgesOut(Schema):
    run: str | None = Field(examples=["12"], description="Null if no run has judged anything.")
    runs: list[str] = Field(examples=[["12", "9"]], description="Runs with scores, the newest first.")
    judges: list[JudgeOut]
    verdicts: list[TriedOut] | None = Field(description="Null unless judges are left out or weights are given.")

    @staticmethod
    def of(view: JudgesView) -> "JudgesOut":
        return JudgesOut(
            run=None if view.run is None else str(view.run.pk),
            runs=[str(run.pk) for run in view.runs],
            judges=[JudgeOut.of(judge) for judge in view.judges],
            verdicts=None if view.pairs is None else [TriedOut.of(pair) for pair in view.pairs],
        )
