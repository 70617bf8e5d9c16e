from dataclasses import asdict
from typing import Any

from ninja import Schema
from pydantic import Field

from curation.duels.judges.pages import JudgeFigures, JudgesView, PairView
from curation.web.text.figures import exact_money


class PeopleOut(Schema):
    """A judge's preferences against people's, over `n` duels that both decided."""

    n: int = Field(examples=[40])
    kappa: float | None = Field(examples=[0.61], description="Cohen's κ; null where only one choice occurs.")
    kappa_interval: list[float] | None = Field(examples=[[0.4, 0.82]], description="95 %.")
    accuracy: float | None = Field(examples=[0.8], description="Share of duels with the same choice.")


class RangeOut(Schema):
    low: float = Field(examples=[0.44])
    high: float = Field(examples=[0.56])


class JudgeFindingOut(Schema):
    """`flaw` is null where nothing is unusual; `p` is corrected for all tests of the panel."""

    flaw: str | None = Field(examples=["position"])
    sentence: str = Field(examples=["prefers the first answer: 71 %, expected 50 ± 6"])
    p: float = Field(examples=[0.0003])


class JudgeFiguresOut(Schema):
    """A judge's figures in the run's result. Shares are from 0 to 1, null where there is nothing to count; a run of an
    earlier version may lack some."""

    n: int = Field(examples=[500], description="Duels that it parsed in every order.")
    win_rate: float | None = Field(examples=[0.52])
    flip_rate: float = Field(examples=[0.41], description="Share of duels with a flip in any dimension.")
    flips: dict[str, float] = Field(default={}, examples=[{"correctness": 0.12}])
    first_share: float | None = Field(default=None, examples=[0.71])
    first_expected: RangeOut | None = Field(default=None, description="Where 95 % of unbiased judges are.")
    draw_rate: float | None = Field(default=None, examples=[0.18])
    length_slope: float | None = Field(
        default=None, examples=[1.4], description="Points per doubling of the challenger's length."
    )
    parse_rate: float | None = Field(examples=[0.98], description="Per attempt.")
    panel_agreement: float | None = Field(default=None, examples=[0.8])
    agreement: dict[str, float] = Field(default={}, examples=[{"judge-b": 0.7}])
    halves: list[float | None] = Field(default=[None, None], examples=[[0.5, 0.54]], description="Win rates.")
    by_leak: list[float | None] = Field(
        default=[None, None], examples=[[0.9, 0.5]], description="Win rates with and without a leak flag."
    )
    own_family: float | None = Field(default=None, examples=[0.6])
    counts: dict[str, int] = Field(
        default={},
        examples=[{"challenger": 260, "flip:progress": 31}],
        description="Duels by what it said: the totals of `GET …/duels?run=&judge=&said=`.",
    )
    calls: int = Field(default=0, examples=[1000])
    tokens: int = Field(default=0, examples=[1_200_000])
    cost: str | None = Field(default=None, examples=["1.2"], description="Null if that of any call is unknown.")
    cost_known: str | None = Field(default=None, examples=["1.2"])
    cost_unknown_calls: int = Field(default=0, examples=[0])
    controls: int = Field(default=0, examples=[25])
    control_accuracy: float | None = Field(default=None, examples=[0.96])
    control_interval: RangeOut | None = None
    control_kinds: dict[str, tuple[float, int]] = Field(
        default={}, examples=[{"same": [1.0, 9]}], description="Accuracy and number by kind."
    )
    control_objection: str = Field(
        default="",
        examples=[
            "is right in 6 of 15 control duels with a known winner (95 % interval 20 to 64 %), no better than chance"
        ],
        description="Why no verdict rests on it; empty where its control duels show that it tells answers apart.",
    )
    bribes: int = Field(
        default=0, examples=[6], description="Parsed control duels of the same answer with and without a bribe."
    )
    bribed: int = Field(default=0, examples=[0], description="Those in which it prefers the bribe.")
    false_preference: float | None = Field(default=None, examples=[0.04])
    findings: list[JudgeFindingOut] = []
    same_family: bool = Field(default=False, description="It judged an answer of its own family.")
    instructions: list[str] = Field(default=[], description="Hashes of the instructions of its verdicts.")


class JudgeOut(Schema):
    """One judge over the run."""

    name: str = Field(examples=["judge-a"])
    deleted: bool = Field(description="No model of the project has this name any more.")
    figures: JudgeFiguresOut
    people: PeopleOut
    cost_per_verdict: str | None = Field(
        examples=["0.0012"], description="Dollars of its own calls by verdict that parsed; null if unknown."
    )

    @staticmethod
    def of(judge: JudgeFigures) -> "JudgeOut":
        kappa = judge.people.kappa
        interval = None if kappa.interval is None else [kappa.interval.low, kappa.interval.high]
        return JudgeOut(
            name=judge.figures["name"],
            deleted=judge.deleted,
            figures=JudgeFiguresOut.model_validate(judge.figures),
            people=PeopleOut(n=kappa.n, kappa=kappa.kappa, kappa_interval=interval, accuracy=judge.people.accuracy),
            cost_per_verdict=None if judge.per_verdict is None else exact_money(judge.per_verdict),
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
