from dataclasses import asdict
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import BeforeValidator, Field

from curation.duels.judges.pages import JudgesQuery, JudgesView, judges_view
from curation.projects.access import enter
from curation.projects.models import Scope
from curation.samples.blind import refuse_pending
from curation.samples.models import Sample
from curation.web.schemas import Ends, Id, Money, Out
from judging.statistics.rates import Interval

router = Router(tags=["duels"])
Named = Annotated[dict[str, str], BeforeValidator(lambda side: side._asdict())]


class PeopleOut(Out):
    """A judge's preferences against people's, over `n` duels that both decided."""

    n: int = Field(validation_alias="kappa.n", examples=[40])
    kappa: float | None = Field(
        validation_alias="kappa.kappa", examples=[0.61], description="Cohen's κ; null where only one choice occurs."
    )
    kappa_interval: Ends | None = Field(validation_alias="kappa.interval", examples=[[0.4, 0.82]], description="95 %.")
    accuracy: float | None = Field(examples=[0.8], description="Share of duels with the same choice.")


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
    flip_rate: float | None = Field(
        examples=[0.41], description="Share of the duels read in both orders with a flip in any dimension."
    )
    flips: dict[str, float] = Field(default={}, examples=[{"correctness": 0.12}])
    first_share: float | None = Field(default=None, examples=[0.71])
    first_expected: Interval | None = Field(default=None, description="Where 95 % of unbiased judges are.")
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
    control_interval: Interval | None = None
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


class JudgeOut(Out):
    """One judge over the run."""

    name: str = Field(validation_alias="figures.name", examples=["judge-a"])
    deleted: bool = Field(description="No model of the project has this name any more.")
    figures: JudgeFiguresOut
    people: PeopleOut
    cost_per_verdict: Money | None = Field(
        validation_alias="per_verdict",
        examples=["0.0012"],
        description="Dollars of its own calls by verdict that parsed; null if unknown.",
    )


class TriedOut(Out):
    """The gate of one challenger against one opponent, `before` as the run decided it."""

    challenger: Named = Field(examples=[{"side": "challenger", "model": "b"}])
    opponent: Named = Field(examples=[{"side": "king", "model": "a"}])
    before: dict[str, Any] = Field(examples=[{"margin": 6.0, "lcb": 2.1, "accepted": True}])
    after: Annotated[dict[str, Any], BeforeValidator(asdict)] = Field(
        examples=[{"margin": 1.0, "lcb": -2.4, "accepted": False}]
    )


class JudgesOut(Out):
    run: Id | None = Field(examples=["12"], description="Null if no run has judged anything.")
    runs: list[Id] = Field(examples=[["12", "9"]], description="Runs with scores, the newest first.")
    judges: list[JudgeOut]
    verdicts: list[TriedOut] | None = Field(
        validation_alias="pairs", description="Null unless judges are left out or weights are given."
    )


@router.get("/projects/{slug}/judges", response=JudgesOut, summary="How each judge of a run behaved")
def list_judges(request: HttpRequest, slug: str, params: Query[JudgesQuery]) -> JudgesView:
    """With `without` or weights also the verdicts that they would give. Nothing is stored, no model is called.
    While you review blind, it opens when all samples are decided."""
    access = enter(request, slug, Scope.READ)
    refuse_pending(access, Sample.objects.of(access.project), "the page of judges")
    return judges_view(access.project, params)
