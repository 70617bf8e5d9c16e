from datetime import datetime

from pydantic import Field

from curation.projects.models import Deletion
from curation.projects.pages.schemas import STAMP
from curation.web.schemas import Id, Out, Strict, Username


class ArchiveIn(Strict):
    archived: bool = Field(examples=[True], description="True hides it from lists; false shows it again.")


class DeletionOut(Out):
    id: Id = Field(examples=["4"])
    noun: str = Field(examples=["project"])
    target: Id = Field(validation_alias="target_id", examples=["17"], description="The id of the deleted object.")
    label: str = Field(examples=["project Shell agents"])
    state: str = Field(examples=["deleting"], description="deleting or deleted")
    rows: int = Field(examples=[120345], description="Rows that are deleted so far.")
    error: str = Field(description="Why the last try stopped; it is tried again.")
    requested_by: Username | None = Field(examples=["ada"])
    created_at: datetime = Field(examples=[STAMP])
    finished_at: datetime | None = Field(examples=[STAMP])

    @staticmethod
    def resolve_state(row: Deletion) -> str:
        return "deleting" if row.finished_at is None else "deleted"
