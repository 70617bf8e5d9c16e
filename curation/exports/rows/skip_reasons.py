"""Rows that may not leave, each with a reason: a code for programs and a sentence for people."""

from collections.abc import Collection
from typing import NamedTuple

from django.db import models

from curation.samples.models import Bucket, Flag, Status

CHARACTERS_PER_TOKEN = 4
TOKENIZER = f"estimate: characters ÷ {CHARACTERS_PER_TOKEN}, rounded up"


class Reason(models.TextChoices):
    """The order is the order of the checks: a row is listed with the first reason that holds."""

    CHANGED = "changed", "The sample changed or was deleted after the export was frozen; export again to take it."
    REJECTED = "rejected", "A person rejected it."
    NOT_APPROVED = "not_approved", "Nobody has approved it yet."
    EXCLUDED_INSTANCE = "excluded_instance", "Its instance is on the project's list of exclusions."
    UNPARSED = "unparsed", "Too few judges could be read, so it has no score."
    INFRA_ERROR = "infra_error", "Infrastructure failed while it was made."
    LEAK = "leak", "It is flagged as leaking the hidden record, and no person has cleared the flag."
    NO_ANSWER = "no_answer", "There is no answer to learn from."
    DRY_RUN = "dry_run", "Its scenario was checked without a sandbox only, so nobody knows whether it can be solved."
    UNGATED = "ungated", "The gate does not admit its scenario as that stands now."
    EDITED = "edited", "Its scenario was edited after the rollout; roll it out again."
    NOT_KEPT = "not_kept", "The episode did not end as its scenario asks, with the checker's consent."
    THINKING = "thinking", "The answer begins with thinking text that was not kept apart."
    EMPTY_PROMPT = "empty_prompt", "Nothing stands before the answer."
    EMPTY_TURN = "empty_turn", "An assistant turn of the history has neither content nor tool calls."
    BAD_MESSAGE = "bad_message", "The history holds a message that is not text from a known role."
    BAD_TURNS = "bad_turns", "Its turns are not an orientation, then commands and outputs in turn up to the terminal."
    DRAW = "draw", "The reviewer saw no difference, so there is no pair to prefer."
    NO_OPPONENT = "no_opponent", "There is no other answer to prefer it to."
    NO_PAIR = "no_pair", "No pair prefers it to another trajectory of its scenario."
    NO_NEGATIVE = "no_negative", "The other side of a pair was ended by time or by infrastructure: that is no mistake."
    BOTH_APPROVED = "both_approved", "A person approved the other side of a pair as well."
    NO_DIVERGENCE = "no_divergence", "The two sides of a pair do not first differ in a command."
    IDENTICAL = "identical", "Chosen and rejected are the same text."
    TOO_LONG = "too_long", "It is longer than the recipe's max_tokens."
    NOT_UTF8 = "not_utf8", "It holds characters that UTF-8 cannot write (half of a surrogate pair)."


class Candidate(NamedTuple):
    """A sample as it was frozen (the fields of `FROZEN`), and beside that what it is now. `version_now` is None for a
    sample that was deleted; the fields after it are those of a sample that may have changed since."""

    sample_id: int
    version: int
    revision_id: int | None
    score: float | None
    bucket: str
    flags: int
    version_now: int | None
    status: str
    kind: str
    source: str
    repo: str
    instance_id: str
    leak_cleared: bool
    run_id: int | None


FROZEN = Candidate._fields[: Candidate._fields.index("version_now")]
# What is read of the sample as it is now, in the order of the fields.
NOW = ("version", "status", "kind", "source", "repo", "instance_id", "leak_cleared", "run_id")


# Looked up once: on an enumeration it costs more than the comparison, and there are as many as rows.
_APPROVED, _REJECTED = Status.APPROVED.value, Status.REJECTED.value
_UNPARSED = Bucket.UNPARSED.value
_LEAK, _INFRA = Flag.LEAK.value, Flag.INFRA.value


def sample_reason(sample: Candidate, excluded_instances: Collection[str]) -> Reason | None:
    """Why a sample may not leave in any format; None where nothing speaks against it."""
    if sample.version != sample.version_now:
        return Reason.CHANGED
    if sample.status != _APPROVED:
        return Reason.REJECTED if sample.status == _REJECTED else Reason.NOT_APPROVED
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
