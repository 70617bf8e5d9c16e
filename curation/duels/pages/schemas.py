"""Response schemas of duels."""

from dataclasses import asdict
from typing import Any

from ninja import Schema
from pydantic import Field

from curation.duels.models import Answer, Duel, Opponent, Verdict
from curation.samples.models import flag_names
from judging.answers.facts import answer_facts


class FactsOut(Schema):
    """Facts about an answer, computed without a judge."""

    has_thought: bool = Field(examples=[True])
    blocks: int = Field(examples=[1])
    commands: int = Field(examples=[1])
    action_style: str = Field(examples=["read"])
    tokens: int = Field(examples=[84])


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
        description="What the second reader found, as spans like the lint's; empty if it did not read.",
    )


class VerdictOut(Schema):
    judge: str = Field(examples=["judge-a"])
    order: str = Field(examples=["king_first"])
    dimensions: dict[str, int] = Field(examples=[{"correctness": 2, "grounding": 0}])
    reason: str
    parsed: bool
    raw: str
    tokens: int
    cost: str | None = Field(examples=["0.000153"])
    latency_ms: int | None


class DuelOut(Schema):
    """A duel, the same in lists and on its own. `king` is the challenger's opponent: in mode 1 the reference, and null
    where `opponent` is `none`."""

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

    king: AnswerOut | None
    challenger: ChallengerOut
    verdicts: list[VerdictOut]


class DuelPage(Schema):
    data: list[DuelOut]
    next_cursor: str | None
    total: int | None = None


def duel_out(duel: Duel) -> dict[str, object]:
    """Needs the queryset's `with_answers()`."""
    leak = {"score": duel.challenger.leak_score, "spans": duel.challenger.leak_spans}
    return {
        "id": str(duel.pk),
        "prompt": str(duel.prompt_id),
        "instance_id": duel.prompt.instance_id,
        "opponent": duel.opponent,
        "score": duel.score,
        "metrics": duel.metrics,
        "bucket": duel.bucket,
        "flags": flag_names(duel.flags),
        "sample": None if duel.sample_id is None else str(duel.sample_id),
        "run": None if duel.run_id is None else str(duel.run_id),
        "king": _opponent(duel),
        "challenger": {**_answer(duel.challenger), "leak": leak, "reading": duel.challenger.reading},
        "verdicts": [_verdict(verdict) for verdict in duel.verdicts.all()],
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
    return None if duel.opponent == Opponent.NONE else _reference(duel)


def _reference(duel: Duel) -> dict[str, object]:
    """Return the source's own turn. Its tokens are estimated: characters ÷ 4."""
    text, calls = duel.reference_text, duel.prompt.text.reference.get("tool_calls", [])
    facts = {**asdict(answer_facts(text)), "tokens": -(-len(text) // 4)}
    return {"text": text, "tool_calls": calls, "facts": facts, "model": None}


def _verdict(verdict: Verdict) -> dict[str, object]:
    return {
        "judge": verdict.judge,
        "order": verdict.order,
        "dimensions": verdict.dimensions,
        "reason": verdict.reason,
        "parsed": verdict.parsed,
        "raw": verdict.raw,
        "tokens": verdict.tokens,
        "cost": None if verdict.cost is None else f"{verdict.cost.normalize():f}",
        "latency_ms": verdict.latency_ms,
    }
