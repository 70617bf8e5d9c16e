"""Responses about deletions."""

from datetime import datetime

from ninja import Schema
from pydantic import Field

from curation.projects.models import Deletion
from curation.projects.pages.schemas import STAMP, Strict


class ArchiveIn(Strict):
    archived: bool = Field(examples=[True], description="True hides it from lists; false shows it again.")


class DeletionOut(Schema):
    id: str = Field(examples=["4"])
    noun: str = Field(examples=["project"])
    target: str = Field(examples=["17"], description="The id of the deleted object.")
    label: str = Field(examples=["project Shell agents"])
    state: str = Field(examples=["deleting"], description="deleting or deleted")
    rows: int = Field(examples=[120345], description="Rows that are deleted so far.")
    error: str = Field(description="Why the last try stopped; it is tried again.")
    requested_by: str | None = Field(examples=["ada"])
    created_at: datetime = Field(examples=[STAMP])
    finished_at: datetime | None = Field(examples=[STAMP])

    @staticmethod
    def of(row: Deletion) -> "DeletionOut":
        return DeletionOut(
            id=str(row.pk),
            noun=row.noun,
            target=str(row.target_id),
            label=row.label,
            state="deleting" if row.finished_at is None else "deleted",
            rows=row.rows,
            error=row.error,
            requested_by=row.requested_by.get_username() if row.requested_by else None,
            created_at=row.created_at,
            finished_at=row.finished_at,
        )
