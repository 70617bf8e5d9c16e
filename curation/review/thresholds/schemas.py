"""The figures of edges, for the page of thresholds and by REST."""

from ninja import Schema
from pydantic import Field

from curation.web.schemas import Out, computed
from curation.web.text.figures import percent
from judging.statistics.rates import wilson


class BinOut(Schema):
    """The samples with scores from `low` to below `high`; the last bin has those with 100 too."""

    low: int = Field(examples=[80])
    high: int = Field(examples=[85])
    samples: int = Field(examples=[412], description="`GET …/samples?score_min=&score_below=&panel=` lists them.")
    pending: int = Field(examples=[371])
    approved: int = Field(examples=[30])
    settled: int = Field(examples=[11], description="Rejected, or to be refined.")
    held: int = Field(examples=[9], description="With a flag that holds a sample out of `final`.")
    rated: int = Field(examples=[38], description="Of the others: decided, by a decision that counts.")
    rated_approved: int = Field(examples=[29])
    url: str = Field(exclude=True)
    held_url: str = Field(exclude=True)

    @computed(examples=[0.763], description="`rated_approved` / `rated`; null without a decision.")
    def rate(self) -> float | None:
        return self.rated_approved / self.rated if self.rated else None

    @computed(examples=[[0.608, 0.870]], description="Its 95 % interval (Wilson).")
    def interval(self) -> list[float] | None:
        found = wilson(self.rated_approved, self.rated) if self.rated else None
        return None if found is None else [found.low, found.high]

    @property
    def rate_words(self) -> str:
        if not self.rated:
            return "–"
        low, high = map(percent, self.interval)
        return f"{percent(self.rate)} ({low} to {high}), {self.rated_approved:,} of {self.rated:,}"


class PrecisionOut(Out):
    """The share of the samples in `final` that people approve, if they decide all of them.

    Undecided samples are approved at the rate of the decided ones in the same bin. Without a decision in one of the
    bins `share` is null, and the interval allows for none and for all of its samples.
    """

    share: float | None = Field(examples=[0.84])
    interval: list[float] = Field(examples=[[0.79, 0.88]], description="95 %.")
    samples: int = Field(examples=[1240])
    decided: int = Field(examples=[212], description="Decisions that it rests on.")
    approved: int = Field(examples=[181])
    unknown: int = Field(examples=[0], description="Samples in bins without a decision.")
    kept_other: int = Field(examples=[4], description="Approvals that kept the opponent's answer or a revision.")
    # The queue shows flips first.
    flips_decided: float | None = Field(examples=[0.31], description="Share with a position flip among the decided.")
    flips_undecided: float | None = Field(examples=[0.12], description="The same among the others.")
    words: str = Field(examples=["People would approve about 84 % of the 1,240 samples in final (95 %: 79 to 88 %)."])

    @property
    def flip_words(self) -> str:
        decided, rest = self.flips_decided, self.flips_undecided
        if decided is None or rest is None:
            return ""
        return (
            f"{percent(decided)} of the decided samples in final have a position flip, of the undecided ones"
            f" {percent(rest)}. The more these differ, the less decided samples say about the others."
        )


class OutlookOut(Out):
    """The bucket `final` with these edges, in points of the score."""

    final: float = Field(examples=[82.0])
    refined: float = Field(examples=[66.0])
    precision: PrecisionOut
    held: int = Field(examples=[31], description="Samples from `final` on that a flag holds out of it.")
    held_by: dict[str, int] = Field(examples=[{"infra": 1, "leak": 24, "leak_reader": 8}])
    held_url: str = Field(exclude=True)
