from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

from curation.evaluations.contamination.schemas import ContaminationOut, Position
from curation.evaluations.models import ContaminationCheck, Split
from curation.web.schemas import Id, NotEmpty, Out

Json = dict[str, Any]


class SplitRef(Schema):
    id: str
    name: str


class SplitOut(Schema):
    id: str
    project: str
    run: str | None
    name: str = Field(examples=["val.jsonl"])
    rows: int = Field(examples=[150])
    baseline: Json | None = Field(description="The evaluation and model that others are compared with.")
    contamination: ContaminationOut | None
    samples_made: int = Field(description="Samples of live episodes on its tasks: a model trained on them has seen it.")
    created_at: datetime


class SplitBrief(Out):
    id: Id
    run: Id | None = Field(validation_alias="run_id")
    name: str
    rows: int = Field(validation_alias="rows_count")
    evaluations: int = Field(0, validation_alias="evaluated")
    created_at: datetime


class SplitRowOut(Out):
    """`messages` are sent; the answer is compared with `expected`. A session is one line with a row for each command:
    `turn` is the position of its message, 0 for other rows."""

    id: Id
    number: Position
    turn: int
    task_id: NotEmpty
    repo: NotEmpty
    tier: NotEmpty
    source: NotEmpty
    messages: list[Json] = Field(validation_alias="text.messages")
    expected: str = Field(validation_alias="text.expected")


def split_out(split: Split, check: ContaminationCheck | None) -> Json:
    baseline = split.baseline
    return {
        "id": str(split.pk),
        "project": split.project.slug,
        "run": None if split.run_id is None else str(split.run_id),
        "name": split.name,
        "rows": split.rows_count,
        "baseline": {"evaluation": str(baseline.evaluation_id), "model": baseline.name} if baseline else None,
        "contamination": check,
        "samples_made": split.samples_made,
        "created_at": split.created_at,
    }


def split_ref(split: Split | None) -> Json | None:
    return {"id": str(split.pk), "name": split.name} if split else None
