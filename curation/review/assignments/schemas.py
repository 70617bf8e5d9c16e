from datetime import datetime

from ninja import Schema
from pydantic import Field

from curation.assignments.models import Assignment
from curation.web.http.responses import version_of
from curation.web.schemas import Id, NotEmpty, Out, StrictModel, computed


class ShareIn(StrictModel):
    username: str = Field(examples=["ana"])
    share: float = Field(
        1.0, gt=0, le=1_000_000, description="In proportion to the others': 1 and 1 are half each.", examples=[1]
    )


class AssignmentIn(StrictModel):
    """A `filter` or `ids`, one of them."""

    people: list[ShareIn] = Field(description="1 to 100 members with the right to review.")
    filter: dict[str, object] | None = Field(
        None, description="A samples filter; its undecided samples are assigned.", examples=[{"repo": "acme/billing"}]
    )
    ids: list[str] = Field([], max_length=500, description="Up to 500 samples.", examples=[[]])
    per_sample: int = Field(1, ge=1, le=9, description="How many of the people get each sample.", examples=[1])
    at_most: int | None = Field(None, ge=1, le=50_000, description="Only so many, the first in the queue's order.")
    shared: bool = Field(False, description="The queue offers the samples to everybody else too, after these people.")
    until: datetime | None = Field(None, description="From then on they are in everybody's queue.")


class AssignedPartOut(Schema):
    username: str = Field(examples=["ana"])
    samples: int = Field(examples=[60])
    left: int = Field(description="Of them those that this person has not decided.", examples=[12])


class AssignmentOut(Schema):
    id: str = Field(examples=["7"])
    created_by: str = Field(examples=["carl"])
    created_at: datetime
    query: str = Field(description="The filter, as the query of the list of samples.", examples=["repo=acme%2Fbilling"])
    shared: bool = Field(examples=[False])
    second_opinion: bool = Field(examples=[False])
    until: datetime | None = Field(examples=[None])
    people: list[AssignedPartOut] = Field(description="Empty for a second opinion of anybody.")

    @classmethod
    def of(cls, row: Assignment, people: list[tuple[str, int, int]]) -> "AssignmentOut":
        parts = [AssignedPartOut(username=name, samples=samples, left=left) for name, samples, left in people]
        shown = {name: getattr(row, name) for name in ("created_at", "query", "shared", "second_opinion", "until")}
        return cls(id=str(row.pk), created_by=row.created_by.get_username(), people=parts, **shown)

    def version(self) -> str:
        """Later decisions do not change it."""
        people = [(part.username, part.samples) for part in self.people]
        return version_of([self.query, self.shared, self.second_opinion, self.until, people])


class AssignmentCreatedOut(AssignmentOut):
    left_out: int = Field(
        description="Samples that matched too: they are assigned already, decided by these people, or over `at_most`.",
        examples=[3],
    )


class TargetIn(StrictModel):
    """Both null: no target."""

    per_day: int | None = Field(None, description="Samples a day (UTC).", examples=[200])
    total: int | None = Field(None, description="Samples in all.", examples=[None])


class WorkloadOut(Schema):
    """A person's decisions in this project, and the remaining work of their assignments and target."""

    username: str = Field(examples=["ana"])
    role: str = Field(exclude=True)
    per_day: int | None = Field(description="The target a day.", examples=[200])
    target: int | None = Field(description="The target in all.", examples=[None])
    today: int = Field(description="Samples decided today (UTC), without bulk decisions.", examples=[41])
    total: int = Field(description="Samples decided ever, without bulk decisions.", examples=[310])
    pace: float | None = Field(description="Median of the last 20 decisions, seconds a sample.", examples=[38.0])
    assigned: int = Field(examples=[120])
    left: int = Field(description="Of the assigned samples those that they have not decided.", examples=[79])

    @computed(description="Until the target of the day.", examples=[159])
    def left_today(self) -> int | None:
        return None if self.per_day is None else max(self.per_day - self.today, 0)

    @computed(description="Until the target in all.", examples=[None])
    def left_in_all(self) -> int | None:
        return None if self.target is None else max(self.target - self.total, 0)

    @computed(description="For `left`, at the present pace.", examples=[0.8])
    def hours_left(self) -> float | None:
        return None if self.seconds_left is None else round(self.seconds_left / 3600, 1)

    @property
    def seconds_left(self) -> float | None:
        return None if self.pace is None or not self.left else self.left * self.pace

    def version(self) -> str:
        """Only a target can be overwritten."""
        return version_of([self.per_day, self.target])


class SecondOpinionIn(StrictModel):
    username: str | None = Field(None, description="Whom to ask; null for anybody.", examples=["ben"])


class SecondOpinionOut(Out):
    sample: Id = Field(examples=["4711"])
    version: int = Field(validation_alias="sample.version", examples=[2])
    status: str = Field(validation_alias="sample.status", examples=["pending"])
    username: NotEmpty = Field(None, validation_alias="member.user.username", examples=["ben"])
    assignment: Id = Field(
        validation_alias="assignment_id",
        description="The id by which you or a curator withdraw the request.",
        examples=["7"],
    )
