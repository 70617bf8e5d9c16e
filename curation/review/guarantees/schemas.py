from datetime import datetime
from typing import Annotated, Any

from django import forms
from pydantic import BeforeValidator, Field, field_validator

from curation.guarantees.models import ClusterColumn
from curation.review.guarantees.draw import MAX_SIZE
from curation.review.guarantees.proof import AliveOut, MoreOut, PointOut, SinceOut
from curation.samples.list.filters import SampleFilter
from curation.web.lists.form_field import FilterField
from curation.web.schemas import Id, NotEmpty, Out, StrictModel, Username
from judging.statistics.guarantee import Noise

Tolerated = Annotated[float, Field(ge=0.001, le=0.5)]
CLUSTERS = [("", "none"), *ClusterColumn.choices]


class AuditIn(StrictModel):
    """The set, the score that orders it, and the promise to prove."""

    filter: Annotated[dict[str, Any], FilterField(SampleFilter, required=False)] = Field(
        {},
        title="Filter",
        examples=[{"kind": "turn"}],
        description="A samples filter. The set is its pending samples, without those that a finding holds or that have "
        "no score.",
    )
    score: str = Field(
        "score",
        max_length=100,
        title="Score",
        examples=["score"],
        description="`score`, `reward`, `reward.<name>` or `predicted`: the higher, the likelier people approve. "
        "`none`: all samples or none of them are approved.",
    )
    size: int = Field(150, ge=1, le=MAX_SIZE, title="Looks", description="Number of samples to draw for people.")
    extensions: int = Field(
        0,
        ge=0,
        le=4,
        title="Extensions",
        description="How often as many looks again may be drawn if these prove too little. δ is divided among the "
        "tests before and after each, so each proves a little less.",
    )
    alpha: Tolerated = Field(
        0.05,
        title="Tolerated errors, α",
        description="The tolerated share of approved samples that people would reject or change.",
    )
    delta: Tolerated = Field(
        0.05, title="Risk, δ", description="The chance that the promise is wrong: 0.05 is 95 % confidence."
    )
    cluster: Annotated[
        str,
        BeforeValidator(lambda given: given or ""),
        forms.ChoiceField(choices=CLUSTERS, required=False),
    ] = Field(
        "",
        title="Cluster",
        examples=["repo"],
        description="`repo`, `instance_id` or `source`: a second test counts one look for each value. Empty: none.",
    )

    @field_validator("cluster")
    @classmethod
    def known_cluster(cls, name: str) -> str:
        if name and name not in ClusterColumn.values:
            raise ValueError(f"is one of {', '.join(ClusterColumn.values)}, or empty")
        return name


class LevelOut(Out):
    """The samples of the set that nobody looks at, with a score of `threshold` or more."""

    threshold: float = Field(examples=[81.5])
    share: float = Field(examples=[0.62], description="Their share of all unseen samples of the set.")
    samples: int = Field(examples=[3100])


class DrawnAuditOut(AuditIn, Out):
    id: Id = Field(examples=["3"])
    seed: int = Field(examples=[4611686018427387904], description="Of the draw.")
    set_sha256: str = Field(description="Hash of the ids, versions and scores of the set.")
    samples: int = Field(examples=[5000], description="Samples in the set.")
    left_out: dict[str, int] = Field(
        examples=[{"held": 12, "begun": 0, "unscored": 4}],
        description="Other pending samples of the filter: held by a finding, begun by people, without the score.",
    )
    method: str = Field(examples=["A simple random sample; exact test."])
    drawn: int = Field(examples=[150], description="Looks that people got: `size`, and as many with each extension.")
    several: NotEmpty = Field(examples=[None], description="What earlier audits of the same samples change.")
    looked: int = Field(examples=[150], description="Drawn samples that somebody decided, skipped or flagged.")
    agreed: int = Field(examples=[147], description="Of these: approved exactly as a guarantee would approve them.")
    proven: LevelOut | None = Field(description="What may be approved unseen; null: nothing.")
    expected: LevelOut | None = Field(description="What the looks so far point to, without any confidence.")
    why_not: NotEmpty = Field(examples=[None], description="Why nothing is proven.")
    curve: list[PointOut] = Field(description="The shares by tolerated share of errors, at the audit's confidence.")
    more_looks: list[MoreOut]
    disagreement: Noise = Field(
        examples=[{"samples": 40, "disagreed": 3, "rate": 0.039, "at_least": 0.011}],
        description="How often people disagreed about the same drawn sample, each without seeing the other's decision. "
        "No α smaller than `at_least` can be promised.",
    )
    seconds_per_decision: float | None = Field(examples=[38.0], description="The median of the looks.")
    seconds_saved: float | None = Field(examples=[117800.0])
    guarantees: list[str] = Field(examples=[["7"]])
    created_by: Username
    created_at: datetime


class GuaranteeIn(StrictModel):
    keep_alive: float = Field(
        0.0,
        ge=0.0,
        le=0.5,
        title="Keep for people",
        examples=[0.02],
        description="Share of the samples that people still look at. If they find too many errors, the guarantee is "
        "withdrawn.",
    )


class GuaranteeOut(Out):
    id: Id = Field(examples=["7"])
    audit: Id = Field(examples=["3"])
    state: str = Field(examples=["holds"], description="approving, holds or withdrawn")
    promise: str = Field(examples=["With 95 % confidence at most 5 % of 3,100 samples would be rejected or changed."])
    alpha: float = Field(examples=[0.05])
    delta: float = Field(examples=[0.05])
    score: str = Field(examples=["score"])
    threshold: float = Field(examples=[81.5])
    set_sha256: str
    samples: int = Field(examples=[3100], description="Number of samples that it approves.")
    approved: int = Field(examples=[3100], description="Approved so far.")
    finished: bool = Field(description="Whether all batches are approved, or given back.")
    keep_alive: float = Field(examples=[0.0])
    alive: AliveOut
    since: SinceOut
    created_by: Username
    created_at: datetime
    withdrawn_at: datetime | None
    withdrawn_by: Username | None = Field(description="Null if it was withdrawn because it no longer held.")
    reason: NotEmpty = Field(examples=[None], description="Why it was withdrawn.")
