"""Rows that may not leave, each with a reason: a code for programs and a sentence for people."""

from collections.abc import Collection
from typing import NamedTuple

from django.db import models

from curation.samples.models import Bucket, Flag, Kind, Status

CHARACTERS_PER_TOKEN = 4
TOKENIZER = f"estimate: characters ÷ {CHARACTERS_PER_TOKEN}, rounded up"


class Reason(models.TextChoices):
    """The order is the order of the checks: a row is listed with the first reason that holds."""

    CHANGED = "changed", "The sample changed or was deleted after the export was frozen; export again to take it."
    REJECTED = "rejected", "A person rejected it."
    NOT_APPROVED = "not_approved", "Nobody has approved it yet."
    UNSUPPORTED_KIND = "unsupported_kind", "It is not a single turn; these formats take turns only."
    EXCLUDED_INSTANCE = "excluded_instance", "Its instance is on the project's list of exclusions."
    UNPARSED = "unparsed", "Too few judges could be read, so it has no score."
    INFRA_ERROR = "infra_error", "Infrastructure failed while it was made."
    LEAK = "leak", "It is flagged as leaking the hidden record, and no person has cleared the flag."
    NO_ANSWER = "no_answer", "There is no answer to learn from."
    THINKING = "thinking", "The answer begins with thinking text that was not kept apart."
    EMPTY_PROMPT = "empty_prompt", "Nothing stands before the answer."
    EMPTY_TURN = "empty_turn", "An assistant turn of the history has neither content nor tool calls."
    BAD_MESSAGE = "bad_message", "The history holds a message that is not text from a known role."
    DRAW = "draw", "The reviewer saw no difference, so there is no pair to prefer."
    NO_OPPONENT = "no_opponent", "There is no other answer to prefer it to."
    IDENTICAL = "identical", "Chosen and rejected are the same text."
    TOO_LONG = "too_long", "It is longer than the recipe's max_tokens."
    NOT_UTF8 = "not_utf8", "It holds characters that UTF-8 cannot write (half of a surrogate pair)."


class Frozen(NamedTuple):
    """A row of `FrozenRow` as plain values."""

    sample_id: int
    version: int
    revision_id: int | None
    score: float | None
    bucket: str
    flags: int


class Facts(NamedTuple):
    """What decides about a sample before its text is looked at, and what its rows carry as metadata."""

    sample_id: int
    version: int
    status: str
    kind: str
    source: str
    repo: str
    instance_id: str
    leak_cleared: bool
    run_id: int | None
    score: float | None
    bucket: str
    flags: int


# Looked up once: on an enumeration it costs more than the comparison, and there are as many as rows.
_APPROVED, _REJECTED = Status.APPROVED.value, Status.REJECTED.value
_TURN, _UNPARSED = Kind.TURN.value, Bucket.UNPARSED.value
_LEAK, _INFRA = Flag.LEAK.value, Flag.INFRA.value


def sample_reason(sample: Facts, excluded_instances: Collection[str]) -> Reason | None:
    """Why a sample may not leave in any format; None where nothing speaks against it."""
    if sample.status != _APPROVED:
        return Reason.REJECTED if sample.status == _REJECTED else Reason.NOT_APPROVED
    if sample.kind != _TURN:
        return Reason.UNSUPPORTED_KIND
    if sample.instance_id and sample.instance_id in excluded_instances:
        return Reason.EXCLUDED_INSTANCE
    if sample.bucket == _UNPARSED:
        return Reason.UNPARSED
    if sample.flags & _INFRA:
        return Reason.INFRA_ERROR
    if sample.flags & _LEAK and not sample.leak_cleared:
        return Reason.LEAK
    return None


def answer_reason(text: str) -> Reason | None:
    """Why an answer cannot stand as an assistant turn, chosen or rejected."""
    start = text.lstrip()
    if not start:
        return Reason.NO_ANSWER
    return Reason.THINKING if start.startswith(("<think>", "<thinking>")) else None


def pair_reason(chosen: str, rejected: str) -> Reason | None:
    """Why two answers make no preference; space at the ends is no difference."""
    if chosen.strip() == rejected.strip():
        return Reason.IDENTICAL
    # A rejected side with thinking text would teach to tell the sides apart by that alone.
    return answer_reason(rejected)


def estimated_tokens(characters: int) -> int:
    """Tokens by the stated estimate; no tokenizer is loaded."""
    return -(-characters // CHARACTERS_PER_TOKEN)
