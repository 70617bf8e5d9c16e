"""Request and response schemas of suggestions and of judging again."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from ninja import Schema
from pydantic import ConfigDict, Field

from curation.duels.pages.schemas import LeakOut
from curation.review.models import Suggestion
from curation.review.schemas import TextScoreOut
from curation.web.lists.filters import Words, ids_of, one_of
from curation.web.lists.params import ListParams


class SuggestionList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("-id", "id")
    lookups: ClassVar[Mapping[str, str]] = {"outcome": "outcome", "run": "run", "sample": "sample"}

    outcome: Annotated[Words, one_of(Suggestion.Outcome.values)] = ()
    run: Annotated[Words, ids_of("run")] = ()
    sample: Annotated[Words, ids_of("sample")] = ()


class RejudgeIn(Schema):
    """`judges` are the project's panel by default."""

    model_config = ConfigDict(extra="forbid")

    judges: list[str] | None = Field(None, examples=[None])


class SuggestionOut(Schema):
    """A model's improvement of an answer. With the outcome `better` it is the sample's revision `revision`."""

    id: str = Field(examples=["31"])
    sample: str = Field(examples=["4711"])
    run: str | None = Field(examples=["12"])
    model: str = Field(examples=["model-b"])
    parent: str | None = Field(examples=[None], description="The revision that it improves; null: the model's answer.")
    revision: str | None = Field(examples=["77"])
    text: str
    flags: list[str] = Field(examples=[["leak"]], description="What the leak lint and the scan found in it.")
    leak: LeakOut
    outcome: str = Field(examples=["kept"], description="`waiting`, `better`, `kept` or `unjudged`.")
    reason: str = Field(examples=["It does not beat its parent (41.7, 50 is equal)."])
    scores: list[TextScoreOut]
    created_at: str = Field(examples=["2026-03-04T05:06:07Z"])

    @staticmethod
    def of(row: Suggestion) -> "SuggestionOut":
        return SuggestionOut(
            id=str(row.pk),
            sample=str(row.sample_id),
            run=None if row.run_id is None else str(row.run_id),
            model=row.model,
            parent=None if row.parent_id is None else str(row.parent_id),
            revision=None if row.revision_id is None else str(row.revision_id),
            text=row.text,
            flags=row.flag_names,
            leak=LeakOut.model_validate({"score": row.leak_score, "spans": row.leak_spans}),
            outcome=row.outcome,
            reason=row.reason,
            scores=[TextScoreOut.of(score) for score in row.text_scores.all()],
            created_at=row.created_at.isoformat().replace("+00:00", "Z"),
        )


class SuggestionPage(Schema):
    data: list[SuggestionOut]
    next_cursor: str | None
    total: int | None = None
