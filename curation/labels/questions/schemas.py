"""Requests and responses of the calls for questions."""

from ninja import Schema
from pydantic import ConfigDict, Field

from curation.labels.questions.change import Wording
from curation.labels.questions.counts import Counted

KINDS = "label, multi_label, rating, span or text"


class QuestionIn(Schema):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(examples=["error_type"], description="Names it in filters and in the columns of an export.")
    title: str = Field(examples=["What is wrong?"])
    description: str = Field("", examples=["The first mistake that matters."])
    kind: str = Field(examples=["label"], description=KINDS)
    choices: list[str | int] = Field(
        [], examples=[["wrong file", "no test"]], description="Words, of a rating whole numbers; none for a text."
    )
    about: str = Field("", examples=["turn"], description="turn or trajectory; empty: all samples.")
    required: bool = Field(False, description="It must be answered before a sample is approved.")

    def wording(self) -> Wording:
        return Wording(**self.model_dump())


class QuestionChange(Schema):
    """Omitted fields keep their values."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    title: str | None = None
    description: str | None = None
    kind: str | None = None
    choices: list[str | int] | None = None
    about: str | None = None
    required: bool | None = Field(None, examples=[True])
    archived: bool | None = Field(None, description="True: it is no longer asked, and its answers stay.")


class QuestionOut(QuestionIn):
    id: str = Field(examples=["3"])
    archived: bool = Field(examples=[False])
    answered: bool = Field(examples=[True], description="It has answers, so its wording stays.")
    samples: int = Field(examples=[12], description="Decided samples with an answer.")
    counts: dict[str, int] = Field(
        examples=[{"wrong file": 8, "no test": 4}],
        description="Decided samples by choice; the filter `label=name=choice` lists them.",
    )

    @staticmethod
    def of(row: Counted) -> dict[str, object]:
        names = ("name", "title", "description", "kind", "choices", "about", "required")
        return {
            "id": str(row.question.pk),
            **{name: getattr(row.question, name) for name in names},
            "archived": row.question.archived_at is not None,
            "answered": row.answered,
            "samples": row.samples,
            "counts": dict(row.values),
        }


class QuestionList(Schema):
    data: list[QuestionOut]
