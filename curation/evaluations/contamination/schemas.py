from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from curation.evaluations.contamination.context import gaps_of
from curation.evaluations.contamination.training import UnreadOut
from curation.evaluations.models import ContaminationCheck
from curation.web.schemas import Id, NotEmpty, Out, Page, StrictModel

Json = dict[str, Any]


class CheckIn(StrictModel):
    """The training data to compare the split with: one of the three."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    export: str = Field("", examples=["12"], description="Its train files.")
    upload: str = Field("", max_length=300, description="Key of an uploaded file.")
    training_split: str = Field("", description="Another split of the project.")


class ContaminationOut(Out):
    """Rows of the split that are in the training data, by level. `contaminated` counts each row once, without rows
    that only share a `common` answer, `whole_only` those that are too short for a search inside longer texts. Nothing
    is clean while the check is `incomplete`."""

    id: Id
    split: Id = Field(validation_alias="split_id")
    run: Id = Field(validation_alias="run_id")
    against: str = Field(examples=["export 12"])
    ready: bool
    counts: dict[str, int] = Field(
        examples=[
            {
                "rows": 150,
                "unread": 0,
                "whole_only": 0,
                "contaminated": 150,
                "exact": 0,
                "near": 147,
                "task_answer": 150,
            }
        ]
    )
    unread: list[UnreadOut] = Field(
        description="The first training rows that were not compared; `counts.unread` is how many there are."
    )
    incomplete: bool
    created_at: datetime

    @staticmethod
    def resolve_incomplete(check: ContaminationCheck) -> bool:
        return bool(gaps_of(check))


# Rows are counted from 0 in the database.
Position = Annotated[int, AfterValidator(lambda number: number + 1)]


class ContaminatedOut(Out):
    """`levels` are all that apply, the strongest first; `matches` are the training rows with their texts."""

    row: Id = Field(validation_alias="row_id")
    number: Position = Field(validation_alias="row.number")
    task_id: NotEmpty = Field(validation_alias="row.task_id")
    level: str = Field(examples=["near"])
    levels: list[str]
    preview: str = Field(validation_alias="row.preview")
    matches: list[Json]


class CheckPage(Page[ContaminatedOut]):
    check: ContaminationOut | None
