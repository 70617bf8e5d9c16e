"""Requests and responses of held-out splits."""

from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import ConfigDict, Field

from curation.evaluations.contamination.schemas import ContaminationOut, contamination_out
from curation.evaluations.models import ContaminationCheck, Split, SplitRow

Json = dict[str, Any]


class SplitIn(Schema):
    """A split from the `sft-messages` file of an export. Import files with `POST …/imports` and `kind=eval_rows`."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    export: str = Field(examples=["12"])
    split: str = Field("val", examples=["val"])
    name: str = Field("", max_length=180, examples=["held-out turns"])


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


class SplitBrief(Schema):
    id: str
    run: str | None
    name: str
    rows: int
    evaluations: int
    created_at: datetime


class SplitRowOut(Schema):
    """`messages` are sent; the answer is compared with `expected`. A session is one line with a row for each command:
    `turn` is the position of its message, 0 for other rows."""

    id: str
    number: int
    turn: int
    task_id: str | None
    repo: str | None
    tier: str | None
    source: str | None
    messages: list[Json]
    expected: str


def split_out(split: Split, check: ContaminationCheck | None) -> Json:
    baseline = split.baseline
    return {
        "id": str(split.pk),
        "project": split.project.slug,
        "run": None if split.run_id is None else str(split.run_id),
        "name": split.name,
        "rows": split.rows_count,
        "baseline": {"evaluation": str(baseline.evaluation_id), "model": baseline.name} if baseline else None,
        "contamination": contamination_out(check) if check else None,
        "samples_made": split.samples_made,
        "created_at": split.created_at,
    }


def split_brief(split: Split) -> Json:
    """Needs `for_list()`, which counts the evaluations."""
    return {
        "id": str(split.pk),
        "run": None if split.run_id is None else str(split.run_id),
        "name": split.name,
        "rows": split.rows_count,
        "evaluations": getattr(split, "evaluated", 0),
        "created_at": split.created_at,
    }


def split_row_out(row: SplitRow) -> Json:
    """Needs `text`."""
    return {
        "id": str(row.pk),
        "number": row.number + 1,
        "turn": row.turn,
        "task_id": row.task_id or None,
        "repo": row.repo or None,
        "tier": row.tier or None,
        "source": row.source or None,
        "messages": row.text.messages,
        "expected": row.text.expected,
    }


def split_ref(split: Split | None) -> Json | None:
    return {"id": str(split.pk), "name": split.name} if split else None
