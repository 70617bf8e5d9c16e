"""Requests and responses of contamination checks."""

from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import ConfigDict, Field

from curation.evaluations.contamination.pages import gaps_of
from curation.evaluations.models import ContaminatedRow, ContaminationCheck
from curation.web.schemas import Page

Json = dict[str, Any]


class CheckIn(Schema):
    """The training data to compare the split with: one of the three."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    export: str = Field("", examples=["12"], description="Its train files.")
    upload: str = Field("", max_length=300, description="Key of an uploaded file.")
    training_split: str = Field("", description="Another split of the project.")


class UnreadOut(Schema):
    """`file` is empty where the training data is one file."""

    line: int
    file: str
    reason: str = Field(examples=["no layout of training data has the columns note"])


class ContaminationOut(Schema):
    """Rows of the split that are in the training data, by level. `contaminated` counts each row once, without rows
    that only share a `common` answer. Nothing is clean while the check is `incomplete`."""

    id: str
    split: str
    run: str
    against: str = Field(examples=["export 12"])
    ready: bool
    counts: dict[str, int] = Field(
        examples=[{"rows": 150, "unread": 0, "contaminated": 150, "exact": 0, "near": 147, "task_answer": 150}]
    )
    unread: list[UnreadOut] = Field(
        description="The first training rows that were not compared; `counts.unread` is how many there are."
    )
    incomplete: bool
    created_at: datetime


class ContaminatedOut(Schema):
    """`levels` are all that apply, the strongest first; `matches` are the training rows with their texts."""

    row: str
    number: int
    task_id: str | None
    level: str = Field(examples=["near"])
    levels: list[str]
    preview: str
    matches: list[Json]


class CheckPage(Page[ContaminatedOut]):
    check: ContaminationOut | None


def contamination_out(check: ContaminationCheck) -> Json:
    return {
        "id": str(check.pk),
        "split": str(check.split_id),
        "run": str(check.run_id),
        "against": check.against,
        "ready": check.ready,
        "counts": check.counts,
        "unread": check.unread,
        "incomplete": bool(gaps_of(check)),
        "created_at": check.created_at,
    }


def contaminated_out(found: ContaminatedRow) -> Json:
    """Needs `row`."""
    return {
        "row": str(found.row_id),
        "number": found.row.number + 1,
        "task_id": found.row.task_id or None,
        "level": found.level,
        "levels": found.levels,
        "preview": found.row.preview,
        "matches": found.matches,
    }
