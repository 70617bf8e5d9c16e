from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from django.db.models import Exists, OuterRef
from pydantic import Field

from curation.duels.pages.schemas import LeakOut
from curation.projects.access import Access
from curation.review.models import Suggestion
from curation.review.queue.seats import Seats, place_of
from curation.review.schemas import TextScoreOut
from curation.samples.models import Sample, flag_names
from curation.web.lists.filters import ListParams, Words, ids_of, named_list, one_of
from curation.web.lists.keyset import KeysetPage
from curation.web.schemas import Id, NotEmpty, Out, Stamp, StrictModel, Username
from curation.web.text.figures import exact_money


@named_list("suggestions", page="suggestion-list")
class SuggestionList(ListParams):
    lookups: ClassVar[Mapping[str, str]] = {"outcome": "outcome", "run": "run", "sample": "sample"}

    outcome: Annotated[Words, one_of(Suggestion.Outcome.values)] = ()
    run: Annotated[Words, ids_of("run")] = ()
    sample: Annotated[Words, ids_of("sample")] = ()

    def rows(self, access: Access) -> KeysetPage[Suggestion]:
        # No join: a database without statistics would search each of a million samples for its suggestions.
        own = Exists(Sample.objects.of(access.project).filter(pk=OuterRef("sample_id")))
        rows = Suggestion.objects.filter(own).select_related("run", "asked_by")
        return self.page(self.narrow(rows.prefetch_related("text_scores")))


class RejudgeIn(StrictModel):
    """`judges` are the project's panel by default."""

    judges: list[str] | None = Field(None, examples=[None])


class SuggestIn(StrictModel):
    model: str = Field(examples=["model-b"], description="Name of a model of the project.")
    of: Literal["candidate", "opponent", "challenger", "king", "left", "right"] = Field(
        "candidate",
        description="Whose answer. left and right are the seats that you see; while you are blind, one of them.",
    )
    note: str = Field("", examples=["Use one command."], description="Instruction for the model.")


class SuggestionOut(Out):
    """A model's improvement of an answer. With the outcome `better` or `saved` it is the sample's revision `revision`.

    One that a person asked for has `asked_by`. Its `state` and `error` are those of its run; `text` is empty until the
    model has answered.
    """

    id: Id = Field(examples=["31"])
    sample: Id = Field(validation_alias="sample_id", examples=["4711"])
    run: Id | None = Field(validation_alias="run_id", examples=["12"])
    model: str = Field(examples=["model-b"])
    parent: Id | None = Field(
        validation_alias="parent_id",
        examples=[None],
        description="The revision that it improves; null: the model's answer.",
    )
    revision: Id | None = Field(validation_alias="revision_id", examples=["77"])
    of: str = Field(examples=["candidate"], description="Whose answer; left or right while you are blind.")
    asked_by: Username | None = Field(examples=["demo"])
    note: str = Field(examples=["Use one command."])
    reasons: bool = Field(examples=[True], description="Whether the model read the judges' reasons.")
    state: str | None = Field(
        None,
        validation_alias="run.state",
        examples=["succeeded"],
        description="The run's state; null: the run was deleted.",
    )
    error: NotEmpty = Field(examples=[None], description="Why there is no text.")
    call: Id | None = Field(validation_alias="call_id", examples=["902"], description="The model call that wrote it.")
    cost: str | None = Field(examples=["0.0021"], description="Of the whole run, in US dollars; null is unknown.")
    text: str
    flags: list[str] = Field(
        validation_alias="flag_names", examples=[["leak"]], description="Findings of the leak lint and the scan."
    )
    leak: LeakOut = Field(description="Null score and no spans while you are blind.")
    outcome: str = Field(
        examples=["kept"],
        description="Of a run `refine`: `waiting`, `better`, `kept` or `unjudged`. Of one that a person asked for: "
        "`asked`, `draft`, `used` (in the person's editor) or `saved`.",
    )
    reason: str = Field(examples=["It does not beat its parent (41.7, 50 is equal)."])
    scores: list[TextScoreOut] = Field(validation_alias="text_scores")
    created_at: Stamp = Field(examples=["2026-03-04T05:06:07Z"])

    @staticmethod
    def resolve_cost(row: Suggestion) -> str | None:
        return None if row.run is None or row.run.cost_unknown_calls else exact_money(row.run.cost)

    @staticmethod
    def resolve_leak(row: Suggestion) -> dict[str, object]:
        return {"score": row.leak_score, "spans": row.leak_spans}

    @staticmethod
    def of_row(row: Suggestion, blind: Seats | None = None) -> "SuggestionOut":
        """While `blind`, `of` is the place in these seats, and the leaks are left out."""
        shown = SuggestionOut.model_validate(row)
        if blind is None:
            return shown
        leak = LeakOut(score=None, spans=[])
        return shown.model_copy(update={"of": place_of(row.of, blind), "leak": leak, "flags": flag_names(row.flags)})
