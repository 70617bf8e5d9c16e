from dataclasses import asdict
from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

from curation.duels.judge.controls import sides_of
from curation.duels.models import Answer, Duel, Opponent
from curation.duels.score.models import Score
from curation.duels.score.shown import ImportedOut, imported, shown, verdicts_of
from curation.samples.models import flag_names
from curation.web.schemas import Id, Money, NotEmpty, Out, Page, StrictModel, out
from judging.answers.facts import answer_facts


class PromptsIn(StrictModel):
    steps: list[int] = Field(default_factory=list, description="The `step_id` of each; empty: all.", examples=[[4]])


@out
class FactsOut:
    """Facts about an answer, computed without a judge. Where no model has counted, `tokens` is an estimate: characters
    ÷ 4."""

    has_thought: bool = Field(examples=[True])
    blocks: int = Field(examples=[1])
    commands: int = Field(examples=[1])
    action_style: str = Field(examples=["read"])
    tokens: int = Field(examples=[84])

    @property
    def one_block(self) -> bool:
        return self.blocks == 1

    @property
    def one_command(self) -> bool:
        return self.commands == 1


class LeakOut(Schema):
    """`score` is leaked ÷ checkable tokens; spans are characters of the answer."""

    score: float | None = Field(examples=[0.25])
    spans: list[dict[str, Any]] = Field(
        examples=[
            [{"start": 61, "end": 73, "token": "safe_decode", "kind": "identifier", "place": "patch", "offset": 8}]
        ]
    )


class AnswerOut(Schema):
    """`text` has the tool calls as lines below it."""

    text: str
    tool_calls: list[dict[str, Any]] = Field(
        examples=[[{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]]
    )
    facts: FactsOut
    model: str | None = Field(examples=["king-a"], description="The endpoint's name; null for the reference.")


class ChallengerOut(AnswerOut):
    leak: LeakOut
    reading: dict[str, Any] = Field(
        examples=[{"model": "reader", "state": "read", "findings": [], "dropped": 0, "calls": 1}],
        description="What the second reader found, as spans like the lint's. `state`: `read`, `unparsed`, `failed` "
        "or `not_asked`; only with `read` was the answer read. Empty if no reader was named.",
    )


class VerdictOut(Out):
    judge: str = Field(examples=["judge-a"])
    order: str = Field(examples=["king_first"])
    dimensions: dict[str, int] = Field(examples=[{"correctness": 2, "grounding": 0}])
    reason: str
    parsed: bool
    raw: str
    tokens: int
    cost: Money | None = Field(examples=["0.000153"])
    latency_ms: int | None


class VerdictRowOut(VerdictOut):
    """A verdict in the list of a project. Its answers are those of the duel; `run` is null if that was deleted."""

    id: Id = Field(examples=["88"])
    duel: Id = Field(validation_alias="duel_id", examples=["812"])
    sample: Id | None = Field(validation_alias="duel.sample_id", examples=["4711"])
    run: Id | None = Field(validation_alias="run_id", examples=["12"])
    call: Id | None = Field(
        validation_alias="call_id", examples=["9001"], description="Null where a recorded verdict was imported."
    )
    control: NotEmpty = Field(
        validation_alias="duel.control", examples=[None], description="The kind of a control duel, else null."
    )
    created_at: datetime


class VerdictPage(Page[VerdictRowOut]):
    pass


class RunScoreOut(Schema):
    """The score that one run gave a duel; it never changes. `bucket` is by the thresholds of the run."""

    run: str | None = Field(examples=["12"])
    panel: str = Field(examples=["3f9a1c0b77de"], description="The id of the panel, as in `GET …/panels`.")
    score: float | None = Field(examples=[71.666667])
    bucket: str = Field(examples=["refined"])
    flags: list[str] = Field(examples=[["flip"]])
    counts: bool = Field(description="Whether it is the duel's and the sample's score.")


class ControlOut(Schema):
    """Why the outcome of a control duel is known, and which side must win: `challenger`, `king` or `draw`."""

    kind: str = Field(examples=["fault"])
    expected: str = Field(examples=["challenger"])


class DuelOut(Schema):
    """A duel, the same in lists and on its own. `king` is the challenger's opponent: in mode 1 the reference, and
    null where `opponent` is `none`.

    `score` to `flags`, `verdicts`, `run` and `panel` belong to the score that counts, or with `?run=` to that of the
    run. `panel` is null, and `bucket` empty, for a duel that the counting panel has not scored. `scores` are all.
    """

    id: str = Field(examples=["812"])
    prompt: str = Field(examples=["77"])
    instance_id: str = Field(examples=["acme__billing-17"])
    opponent: str = Field(examples=["king"])
    score: float | None = Field(examples=[71.666667])
    metrics: dict[str, float] = Field(examples=[{"correctness": 83.333333}])
    bucket: str = Field(examples=["refined"])
    flags: list[str] = Field(examples=[["flip"]])
    sample: str | None = Field(examples=["4711"])
    run: str | None = Field(examples=["12"])
    panel: str | None = Field(examples=["3f9a1c0b77de"])
    scores: list[RunScoreOut]
    imported: ImportedOut | None = Field(description="Set where `score` was imported; `panel` is null then.")
    control: ControlOut | None = Field(description="Null for a run's own duels.")

    king: AnswerOut | None
    challenger: ChallengerOut
    verdicts: list[VerdictOut]


OUTCOMES = {1: "challenger", -1: "king", 0: "draw"}


def duel_out(duel: Duel) -> dict[str, object]:
    """Needs the queryset's `with_answers()`."""
    found = shown(duel)
    run = found.row.run_id if found.row is not None else duel.run_id
    leak = {"score": duel.challenger.leak_score, "spans": duel.challenger.leak_spans}
    return {
        "id": str(duel.pk),
        "prompt": str(duel.prompt_id),
        "instance_id": duel.prompt.instance_id,
        "opponent": duel.opponent,
        "score": found.score,
        "metrics": found.metrics,
        "bucket": found.bucket,
        "flags": found.flag_names,
        "sample": None if duel.sample_id is None else str(duel.sample_id),
        "run": None if run is None else str(run),
        "panel": None if found.row is None else found.row.panel.digest,
        "scores": [_score(score, duel) for score in duel.scores.all()],
        "imported": found.row is None and (of := imported(duel)) and asdict(of) or None,
        "control": duel.control and {"kind": duel.control, "expected": OUTCOMES[duel.expected or 0]} or None,
        "king": _opponent(duel),
        "challenger": {
            **_answer(duel.challenger),
            **_planted(duel, 1),
            "leak": leak,
            "reading": duel.challenger.reading,
        },
        "verdicts": verdicts_of(duel, found.row),
    }


def _score(row: Score, duel: Duel) -> dict[str, object]:
    return {
        "run": None if row.run_id is None else str(row.run_id),
        "panel": row.panel.digest,
        "score": row.score,
        "bucket": row.bucket,
        "flags": flag_names(row.flags),
        "counts": row.pk == duel.counting_id,
    }


def _answer(answer: Answer) -> dict[str, object]:
    facts = {
        "has_thought": answer.has_thought,
        "blocks": answer.blocks,
        "commands": answer.commands,
        "action_style": answer.action_style,
        "tokens": answer.tokens,
    }
    return {"text": answer.text.text, "tool_calls": answer.text.tool_calls, "facts": facts, "model": answer.model}


def _opponent(duel: Duel) -> dict[str, object] | None:
    if duel.king is not None:
        return _answer(duel.king)
    if duel.control:
        return {**_answer(duel.challenger), **_planted(duel, 0)}
    return None if duel.opponent == Opponent.NONE else _reference(duel)


def _planted(duel: Duel, side: int) -> dict[str, object]:
    """Return the fields that a planted fault changes on this side: 0 for the opponent, 1 for the challenger."""
    text = sides_of(duel)[side] if duel.planted else ""
    if not text or text != duel.planted:
        return {}
    return {"text": text, "facts": {**asdict(answer_facts(text)), "tokens": -(-len(text) // 4)}}


def _reference(duel: Duel) -> dict[str, object]:
    """Return the source's own turn. Its tokens are estimated: characters ÷ 4."""
    text, calls = duel.reference_text, duel.prompt.text.reference.get("tool_calls", [])
    facts = {**asdict(answer_facts(text)), "tokens": -(-len(text) // 4)}
    return {"text": text, "tool_calls": calls, "facts": facts, "model": None}
