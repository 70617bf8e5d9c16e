"""Request and response schemas of suggestions and of judging again."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from ninja import Schema
from pydantic import Field

from curation.duels.pages.schemas import LeakOut
from curation.review.models import Suggestion
from curation.review.queue.seats import Seats, place_of
from curation.review.schemas import TextScoreOut
from curation.samples.models import flag_names
from curation.web.lists.filters import Words, ids_of, one_of
from curation.web.lists.params import ListParams, named_list
from curation.web.schemas import Strict
from curation.web.text.figures import exact_money


@named_list("suggestions", page="suggestion-list")
class SuggestionList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("-id", "id")
    lookups: ClassVar[Mapping[str, str]] = {"outcome": "outcome", "run": "run", "sample": "sample"}

    outcome: Annotated[Words, one_of(Suggestion.Outcome.values)] = ()
    run: Annotated[Words, ids_of("run")] = ()
    sample: Annotated[Words, ids_of("sample")] = ()


class RejudgeIn(Strict):
    """`judges` are the project's panel by default."""

    judges: list[str] | None = Field(None, examples=[None])


class SuggestIn(Strict):
    model: str = Field(examples=["model-b"], description="Name of a model of the project.")
    of: Literal["candidate", "opponent", "challenger", "king", "left", "right"] = Field(
        "candidate",
        description="Whose answer. left and right are the seats that you see; while you are blind, one of them.",
    )
    note: str = Field("", examples=["Use one command."], description="Instruction for the model.")


class SuggestionOut(Schema):
    """A model's improvement of an answer. With the outcome `better` or `saved` it is the sample's revision `revision`.

    One that a person asked for has `asked_by`. Its `state` and `error` are those of its run; `text` is empty until the
    model has answered.
    """

    id: str = Field(examples=["31"])
    sample: str = Field(examples=["4711"])
    run: str | None = Field(examples=["12"])
    model: str = Field(examples=["model-b"])
    parent: str | None = Field(examples=[None], description="The revision that it improves; null: the model's answer.")
    revision: str | None = Field(examples=["77"])
    of: str = Field(examples=["candidate"], description="Whose answer; left or right while you are blind.")
    asked_by: str | None = Field(examples=["demo"])
    note: str = Field(examples=["Use one command."])
    reasons: bool = Field(examples=[True], description="Whether the model read the judges' reasons.")
    state: str | None = Field(examples=["succeeded"], description="The run's state; null: the run was deleted.")
    error: str | None = Field(examples=[None], description="Why there is no text.")
    call: str | None = Field(examples=["902"], description="The model call that wrote it.")
    cost: str | None = Field(examples=["0.0021"], description="Of the whole run, in US dollars; null is unknown.")
    text: str
    flags: list[str] = Field(examples=[["leak"]], description="Findings of the leak lint and the scan.")
    leak: LeakOut = Field(description="Null score and no spans while you are blind.")
    outcome: str = Field(
        examples=["kept"],
        description="Of a run `refine`: `waiting`, `better`, `kept` or `unjudged`. Of one that a person asked for: "
        "`asked`, `draft`, `used` (in the person's editor) or `saved`.",
    )
    reason: str = Field(examples=["It does not beat its parent (41.7, 50 is equal)."])
    scores: list[TextScoreOut]
    created_at: str = Field(examples=["2026-03-04T05:06:07Z"])

    @staticmethod
    def of_row(row: Suggestion, blind: Seats | None = None) -> "SuggestionOut":
        """While `blind`, `of` is the place in these seats, and the leaks are left out."""
        run = row.run
        leak = {"score": None, "spans": []} if blind else {"score": row.leak_score, "spans": row.leak_spans}
        return SuggestionOut(
            id=str(row.pk),
            sample=str(row.sample_id),
            run=None if row.run_id is None else str(row.run_id),
            model=row.model,
            parent=None if row.parent_id is None else str(row.parent_id),
            revision=None if row.revision_id is None else str(row.revision_id),
            of=place_of(row.of, blind) if blind else row.of,
            asked_by=row.asked_by.get_username() if row.asked_by else None,
            note=row.note,
            reasons=row.reasons,
            state=run.state if run else None,
            error=row.error or None,
            call=None if row.call_id is None else str(row.call_id),
            cost=None if run is None or run.cost_unknown_calls else exact_money(run.cost),
            text=row.text,
            flags=flag_names(row.flags) if blind else row.flag_names,
            leak=LeakOut.model_validate(leak),
            outcome=row.outcome,
            reason=row.reason,
            scores=[TextScoreOut.model_validate(score) for score in row.text_scores.all()],
            created_at=row.created_at.isoformat().replace("+00:00", "Z"),
        )
