from typing import Annotated, Literal

from django.http import HttpRequest
from ninja import Schema
from pydantic import BeforeValidator, Field, field_validator

from curation.duels.pages.schemas import FactsOut, LeakOut
from curation.guarantees.models import Guarantee
from curation.review.decisions.findings import TextFinding
from curation.review.decisions.state import is_waiting, stale
from curation.review.models import Decision, Lease, Pick, Revision
from curation.review.queue.seats import Seats, place_of, seats_of
from curation.samples.list.api import SampleOut
from curation.samples.models import Sample
from curation.trajectories.pages.schemas import TurnOut
from curation.web.http.responses import matches
from curation.web.schemas import Id, NotEmpty, Out, Set, Stamp, StrictModel, Username


class QueueNextIn(StrictModel):
    order: Literal["borderline", "newest", "random", "useful"] = Field(
        "borderline", description="`useful`: the samples first of whose approval the model of decisions is least sure."
    )
    filter: dict[str, object] = Field({}, description="A samples filter.", examples=[{"bucket": "refined"}])
    resume: bool = Field(False, description="Answer with the sample that you have open and have not decided, if any.")


class LeaseOut(Schema):
    """`seats` says which answer is shown where; `left` and `right` in a decision refer to them. It is null while the
    review is blind."""

    id: str = Field(examples=["93"])
    sample: str = Field(examples=["4711"])
    until: str = Field(examples=["2026-03-04T05:06:07Z"])
    seats: dict[str, str] | None = Field(examples=[{"left": "challenger", "right": "king"}])

    @classmethod
    def of(cls, lease: Lease, *, blind: bool) -> "LeaseOut":
        seats = seats_of(lease)
        shown = {"left": seats.left.label.lower(), "right": seats.right.label.lower()}
        return cls(
            id=str(lease.pk),
            sample=str(lease.sample_id),
            until=lease.until.isoformat().replace("+00:00", "Z"),
            seats=None if blind else shown,
        )


class SampleAnswerOut(Schema):
    """`revision` is the latest one of this answer; approving keeps its text instead of `text`."""

    model: str = Field(examples=["king-a"])
    text: str = Field(examples=["THOUGHT: I look around first.\n\n```bash\nls -la\n```"])
    facts: FactsOut
    leak: LeakOut | None = None
    revision: str | None = Field(None, examples=[None])


class AnswersOut(Schema):
    """`king` is the reference where the duel's `opponent` says so, and null where that is `none`."""

    opponent: str = Field(examples=["king"])
    king: SampleAnswerOut | None
    challenger: SampleAnswerOut


class SideOut(Schema):
    """An answer without its side. `text` is the text that approving keeps, its latest revision if it has one."""

    text: str = Field(examples=["THOUGHT: I look around first.\n\n```bash\nls -la\n```"])
    facts: FactsOut


class SampleDetail(SampleOut):
    """The row of the list, the `answers` of a duel or the `turns` of a trajectory (the other is null), and who decided.

    While you review blind (`hidden`), a duel has `left` and `right` instead of `answers`, by the seats of your lease;
    `right` is null where there is one answer.

    Verdicts and outcomes are at `/duels/{duel}` and `/trajectories/{trajectory}`.
    """

    hidden: bool = Field(examples=[False])
    answers: AnswersOut | None
    left: SideOut | None
    right: SideOut | None
    turns: list[TurnOut] | None
    decided_by: str | None = Field(examples=["demo"])
    decided_at: str | None = Field(examples=["2026-03-04T05:06:07Z"])


class DecisionIn(StrictModel):
    action: str = Field(description="approve, reject, refine, skip or flag", examples=["approve"])
    reason: str = Field("", examples=["leaks"])
    comment: str = ""
    preference: str | None = Field(
        None,
        description="left or right, by the lease's seats; king or challenger; or draw. Approving keeps the preferred "
        "answer, by default the challenger's.",
        examples=["right"],
    )
    seconds: float | None = Field(None, description="Time spent on the sample.", examples=[12.5])
    version: int | None = Field(None, description="The version that was seen; the same as `If-Match`.", examples=[1])
    trim: int | None = Field(
        None, ge=1, description="To approve a trajectory up to the step of this `step_id`.", examples=[None]
    )
    keep: str | None = Field(
        None,
        description="To adjudicate a disputed sample: the id of the decision that is right. `action` is its action.",
        examples=[None],
    )


class MarksIn(StrictModel):
    steps: list[int] = Field(default_factory=list, description="The `step_id` of each.", examples=[[4, 5]])
    step: int | None = Field(None, description="One more, for a single one.", examples=[None])
    learn: bool | None = Field(None, description="False: a model does not learn from them.", examples=[False])
    label: str | None = Field(
        None, description="correct, wrong, useless or risky; empty takes it away.", examples=[None]
    )


class MarkOut(Schema):
    step: int = Field(examples=[4])
    learn: bool = Field(examples=[False])
    label: str | None = Field(examples=["wrong"])


NotZero = Annotated[int | None, BeforeValidator(lambda given: given or None)]


class UnderOut(Schema):
    """The guarantee under which nobody looked: at most the share `alpha` of its samples would be rejected or changed,
    with the confidence 1 − `delta`."""

    guarantee: str = Field(examples=["7"])
    alpha: float = Field(examples=[0.05])
    delta: float = Field(examples=[0.05])
    score: str = Field(examples=["score"])
    threshold: float = Field(examples=[81.5])
    set_sha256: str


class DecisionOut(Out):
    id: Id = Field(examples=["502"])
    sample: Id = Field(validation_alias="sample_id", examples=["4711"])
    action: str = Field(examples=["approve"])
    reason: str = Field(examples=[""])
    comment: str = Field(examples=[""])
    preference: NotEmpty = Field(examples=["right"])
    pick: NotEmpty = Field(
        description="The picked side: candidate (challenger), opponent (king) or draw", examples=["candidate"]
    )
    reviewer: Username = Field(examples=["demo"])
    seconds: float | None = Field(examples=[12.5])
    seat: NotEmpty = Field(examples=["king_left"])
    version: int = Field(description="The sample's version that was decided on", examples=[1])
    revision: Id | None = Field(
        validation_alias="revision_id",
        description="The revision that was approved, reopened the sample or was undone; null: the answer as recorded",
        examples=[None],
    )
    text_sha256: NotEmpty = Field(description="Of the approved text; an export compares it", examples=[None])
    waits: bool = Field(
        examples=[False], description="It waits for the decisions of others, or for somebody who adjudicates."
    )
    round: NotZero = Field(
        examples=[None], description="Independent decisions on a sample have the same number; null: decided alone."
    )
    batch: NotEmpty = Field(examples=[None])
    under: UnderOut | None = Field(
        None,
        validation_alias="guarantee",
        examples=[None],
        description="The guarantee of an approval without a look, which `reviewer` started; null: a person's decision.",
    )
    created_at: Stamp = Field(examples=["2026-03-04T05:06:07Z"])
    undone: Set = Field(validation_alias="undone_by_id", examples=[False])

    @field_validator("under", mode="before")
    @classmethod
    def of_guarantee(cls, row: object) -> object:
        if not isinstance(row, Guarantee):
            return row
        audit = row.audit
        names = ("alpha", "delta", "score", "set_sha256")
        return {"guarantee": str(row.pk), "threshold": row.threshold} | {name: getattr(audit, name) for name in names}

    @staticmethod
    def resolve_waits(row: Decision) -> bool:
        return is_waiting(row, row.sample)

    @classmethod
    def of(cls, row: Decision, *, blind: bool = False) -> "DecisionOut":
        """While `blind`, without the fields that tell the sides apart."""
        shown = cls.model_validate(row)
        hidden = ("pick", "seat", "revision", "text_sha256")
        return shown.model_copy(update=dict.fromkeys(hidden)) if blind else shown


class RevisionIn(StrictModel):
    text: str = Field(examples=["THOUGHT: Read the file.\n\n```bash\nsed -n '1,80p' billing/totals.py\n```"])
    note: str = Field("", examples=["One command is enough."])
    of: Literal["candidate", "opponent", "challenger", "king", "left", "right"] = Field(
        "candidate", description="left and right are the seats that you see; while you are blind, one of them."
    )
    version: int | None = Field(None, description="The sample's version that was seen; the same as `If-Match`.")
    suggestion: str | None = Field(
        None, description="Your suggestion that the text comes from, edited or not.", examples=[None]
    )


class TextScoreOut(Out):
    """A panel's score of a new text against the king or its parent, 0 to 100; above 50 it is better."""

    against: str = Field(examples=["king"])
    score: float | None = Field(examples=[71.7], description="Null where too few judges parsed.")
    metrics: dict[str, float] = Field(examples=[{"correctness": 83.3}])
    panel: str = Field(validation_alias="panel.digest", examples=["3f9a1c0b77de"])
    run: Id | None = Field(validation_alias="run_id", examples=["12"])
    readings: list[dict[str, object]] = Field(
        examples=[[{"judge": "judge-a", "order": "king_first", "parsed": True, "dimensions": {}, "reason": "…"}]],
        description="Each judge's replies; in `king_first` the other text is the first answer.",
    )


class RevisionSourceOut(Schema):
    """The suggestion that a revision comes from, and the model call that wrote it (null: deleted)."""

    id: str = Field(examples=["31"])
    model: str = Field(examples=["model-b"])
    call: str | None = Field(examples=["902"])
    edited: bool = Field(examples=[False], description="Whether the person changed the text before saving it.")

    @classmethod
    def of(cls, row: Revision) -> "RevisionSourceOut | None":
        """Needs `suggestion` to be selected."""
        found = getattr(row, "suggestion", None)
        if found is None:
            return None
        call = None if found.call_id is None else str(found.call_id)
        return cls(id=str(found.pk), model=found.model, call=call, edited=found.text != row.text)


class RevisionOut(Schema):
    id: str = Field(examples=["31"])
    sample: str = Field(examples=["4711"])
    number: int = Field(examples=[1])
    of: str = Field(examples=["candidate"])
    parent: str | None = Field(examples=[None])
    author: str = Field(examples=["demo"], description="The person, or the model that wrote it.")
    model: str | None = Field(examples=[None], description="The model that wrote it; null: a person.")
    suggestion: RevisionSourceOut | None = Field(examples=[None], description="Null while you are blind.")
    text: str
    note: str
    facts: dict[str, object] = Field(
        examples=[{"has_thought": True, "blocks": 1, "commands": 1, "action_style": "read"}]
    )
    leak: LeakOut = Field(description="The leak lint of this text; the score is null where nothing was compared.")
    diff: str = Field(description="Unified diff against the parent, or against the model's answer", examples=["@@ …"])
    undone: bool = Field(examples=[False], description="Its author took it back: the text before it counts.")
    scores: list[TextScoreOut] = Field(description="From judging it again; empty while you are blind.")
    created_at: str = Field(examples=["2026-03-04T05:06:07Z"])

    @classmethod
    def of_row(cls, row: Revision, facts: dict[str, object], diff: str, *, blind: Seats | None) -> "RevisionOut":
        """While `blind`, `of` is the place in these seats, and leaks and scores are left out."""
        leak = {"score": None, "spans": []} if blind else {"score": row.leak_score, "spans": row.leak_spans}
        return cls(
            id=str(row.pk),
            sample=str(row.sample_id),
            number=row.number,
            of=place_of(row.of, blind) if blind else row.of,
            parent=str(row.parent_id) if row.parent_id else None,
            author=row.written_by,
            model=None if blind else row.model or None,
            suggestion=None if blind else RevisionSourceOut.of(row),
            text=row.text,
            note=row.note,
            facts=facts,
            leak=LeakOut.model_validate(leak),
            diff=diff,
            undone=row.undone_by_id is not None,
            scores=[] if blind else [TextScoreOut.model_validate(score) for score in row.text_scores.all()],
            created_at=row.created_at.isoformat().replace("+00:00", "Z"),
        )


class ScanFindingOut(Schema):
    """A finding of the scan. `start` and `end` are characters of the text at `part` and `index`; the value itself is
    only named by its hash."""

    part: str = Field(description="history, turn, challenger, king, comment or note", examples=["challenger"])
    index: int = Field(
        description="The message of the history, the turn, or the id of the revision or decision; 0 for an answer as "
        "recorded",
        examples=[0],
    )
    rule: str = Field(examples=["email"])
    kind: str = Field(description="secret, pii or control", examples=["pii"])
    start: int = Field(examples=[61])
    end: int = Field(examples=[80])
    value_sha256: str = Field(examples=["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"])
    action: str = Field(description="Action of an export unless it is cleared: keep_out or mask", examples=["mask"])
    cleared_by: str | None = Field(examples=[None])

    @classmethod
    def of(cls, found: TextFinding, action: str, *, blind: Seats | None = None) -> "ScanFindingOut":
        """While `blind`, an answer is named by its place in these seats."""
        names = ("index", "rule", "kind", "start", "end", "value_sha256", "cleared_by")
        part = found.part
        if blind:
            for word, side in (("challenger", Pick.CHALLENGER), ("king", Pick.KING)):
                part = part.replace(word, place_of(side, blind))
        return cls(action=action, part=part, **{name: getattr(found, name) for name in names})


class ClearanceIn(StrictModel):
    rule: str = Field(examples=["email"])
    value_sha256: str = Field(examples=["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"])
    reason: str = Field(description="Why it may leave", examples=["The address of a public mailing list."])


class BulkIn(StrictModel):
    """Either `ids`, or `project`, `filter` and the `count` that you expect to match."""

    action: str = Field(description="approve, reject, refine or queue", examples=["approve"])
    ids: list[str] = Field([], examples=[["4711", "4712"]])
    reason: str = ""
    comment: str = ""
    project: str = Field("", description="Slug; needed with a filter.")
    filter: dict[str, object] | None = None
    count: int | None = Field(None, description="How many samples you expect to match; another number: 409.")


class BatchIn(StrictModel):
    project: str = Field(examples=["demo"])
    batch: str = Field(examples=["5f0c…"])


class BatchOut(Out):
    """A bulk decision. `restored` of the `changed` samples have been undone with it."""

    batch: str = Field(validation_alias="key", examples=["5f0c…"])
    action: str = Field(examples=["approve"])
    reason: str
    query: str = Field(description="The filter; empty for a selection.", examples=["bucket=final"])
    reviewer: Username = Field(examples=["demo"])
    changed: int = Field(examples=[120])
    restored: int = Field(examples=[0])
    created_at: Stamp = Field(examples=["2026-03-04T05:06:07Z"])


def seen_version(request: HttpRequest, sample: Sample, body_version: int | None) -> int | None:
    """The version in `If-Match`, else in the body; None without either. Raises `Stale` where `If-Match` does not name
    the sample's."""
    match = matches(request, sample.version)
    if match is False:
        raise stale(sample, given=request.headers["If-Match"])
    return sample.version if match else body_version
