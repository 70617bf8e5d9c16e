"""Why a sample gives no row: a code for programs and a sentence for people."""

import re
from collections.abc import Collection
from typing import NamedTuple

from django.db import models

from curation.samples.models import LEAKS, Bucket, Flag, SampleStatus
from judging.answers.read import OPENS_THINKING, OPENS_TOLD


class SkipReason(models.TextChoices):
    """In the order of the checks: a sample is listed with the first reason that applies."""

    CHANGED = "changed", "The sample was changed or deleted after the export was frozen. Export again to include it."
    REJECTED = "rejected", "A person rejected the sample."
    NOT_APPROVED = "not_approved", "Nobody has approved the sample yet."
    EXCLUDED_INSTANCE = "excluded_instance", "The sample's instance is on the project's list of exclusions."
    UNPARSED = "unparsed", "Too few judges' replies could be parsed, so the sample has no score."
    INFRA_ERROR = "infra_error", "Infrastructure failed while the sample was made."
    LEAK = "leak", "The sample is flagged as leaking the hidden record, and no person has cleared the flag."
    NO_ANSWER = "no_answer", "There is no answer to learn from."
    DRY_RUN = "dry_run", "The scenario was only checked without a sandbox, so nobody knows whether it can be solved."
    UNGATED = "ungated", "The gate does not admit the current version of the scenario."
    EDITED = "edited", "The scenario was edited after the rollout. Run the rollout again."
    NOT_KEPT = "not_kept", "The episode did not end as its scenario or task requires, or the checker did not agree."
    THINKING = "thinking", "The answer begins with thinking text."
    EMPTY_PROMPT = "empty_prompt", "There is no text before the answer."
    EMPTY_TURN = "empty_turn", "An assistant turn of the history has neither content nor tool calls."
    BAD_MESSAGE = "bad_message", "The history has a message that is not text or images from a known role."
    NO_IMAGES = (
        "no_images",
        "The format has no place for the sample's images, or the project does not keep one of them.",
    )
    BAD_TURNS = "bad_turns", "The session's turns are not an orientation followed by alternating commands and outputs."
    NOT_AS_APPROVED = "not_as_approved", "The text is not the one that was approved. Read it again and approve it."
    SECRET = "secret", "The sample contains a secret that nobody has cleared."
    PII = "pii", "The sample contains personal data that nobody has cleared and that the project does not mask."
    CONTROL_TEXT = (
        "control_text",
        "An assistant message has control text, such as a token of a chat template, that nobody has cleared.",
    )
    CONTAMINATED = "contaminated", "The sample contains a row of a held-out set that the recipe names."
    REPEATED = ("repeated", "The rejected answer is also that of another sample of the prompt, and is exported once.")
    CONTRADICTED = (
        "contradicted",
        "Another sample of the prompt prefers the two answers the other way round, or approves the rejected one.",
    )
    DUPLICATE = "duplicate", "The sample repeats another exported one, or is its turn against another opponent."
    OVER_CAP = "over_cap", "The recipe caps its repository, task or axis, and better-scored samples fill the cap."
    DRAW = "draw", "The reviewer chose a draw, so neither answer is preferred."
    NO_OPPONENT = "no_opponent", "The answer has no other answer to be preferred to."
    NO_STEP_LABELS = "no_step_labels", "The sample is no session with a labelled step."
    NO_REWARD = "no_reward", "The sample is no session with a reward."
    NO_SOLVE_RATE = (
        "no_solve_rate",
        "No rollout of the scenario or task is known, all or none of them solve it, or their share is outside the"
        " recipe's bounds.",
    )
    SAME_PROMPT = "same_prompt", "The prompt of the scenario or task is exported once, with another sample."
    NO_SESSION = "no_session", "The sample is a turn, and the format has whole sessions."
    NO_PAIR = "no_pair", "No pair prefers the trajectory to another of its scenario or task."
    NO_NEGATIVE = "no_negative", "The machine ended the other side of a pair, or nobody knows whether it failed."
    BOTH_APPROVED = "both_approved", "A person approved the other side of a pair as well."
    NO_DIVERGENCE = "no_divergence", "The first difference between the two sides of a pair is not a step of the agent."
    NOT_LEARNED = "not_learned", "The chosen side of a pair has a step that is marked as not to learn from."
    IDENTICAL = "identical", "Chosen and rejected are the same text."
    WHOLE_TRAJECTORY = (
        "whole_trajectory",
        "The sample is a pair of whole trajectories; the format has one message on a side.",
    )
    NO_TOOLS = "no_tools", "The sample has tools or tool calls, which the format's reader drops."
    NO_ALTERNATION = "no_alternation", "The roles do not alternate in a way that the format's reader accepts."
    TOOL_WITHOUT_CALL = "tool_without_call", "A tool's message answers no call, which the format's reader refuses."
    CALL_WITHOUT_RESULT = (
        "call_without_result",
        "A call of the history has no result, which the format's reader refuses.",
    )
    TEMPLATE_ERROR = "template_error", "The chat template refuses the row, or takes too long."
    NOT_RENDERED = "not_rendered", "The chat template leaves out text that the row is trained on."
    UNDECLARED_TOOL = "undeclared_tool", "The row calls a tool that it does not declare."
    TOO_LONG = "too_long", "The sample is longer than the recipe's max_tokens."
    NOT_UTF8 = "not_utf8", "The sample contains characters that UTF-8 cannot encode (half of a surrogate pair)."


# Constants, because a lookup on the enumeration costs more than the comparison, for every row.
_APPROVED, _REJECTED = SampleStatus.APPROVED.value, SampleStatus.REJECTED.value
_UNPARSED = Bucket.UNPARSED.value
_LEAK, _INFRA = int(LEAKS), Flag.INFRA.value


class FrozenSample(NamedTuple):
    """A sample as it was frozen (`FROZEN_FIELDS`), then as it is now. `version_now` is None if it was deleted, and
    `leak_cleared` empty unless a person cleared the flag."""

    sample_id: int
    version: int
    revision_id: int | None
    score: float | None
    bucket: str
    flags: int
    duplicate_of: int | None
    over_cap: str
    contaminated: str
    version_now: int | None
    status: str
    kind: str
    source: str
    repo: str
    instance_id: str
    leak_cleared: str
    run_id: int | None

    @property
    def is_rejected(self) -> bool:
        return self.status == _REJECTED


FROZEN_FIELDS = FrozenSample._fields[: FrozenSample._fields.index("version_now")]
# The columns of the sample that fill the fields from `version_now` on.
CURRENT_COLUMNS = ("version", "status", "kind", "source", "repo", "instance_id", "leak_cleared", "run_id")


def sample_reason(
    sample: FrozenSample, excluded_instances: Collection[str], *, rejected: bool = False
) -> SkipReason | None:
    """Return why a sample is skipped in all formats, or None. With `rejected` it may be one that a person rejected."""
    if sample.version != sample.version_now:
        return SkipReason.CHANGED
    if sample.status == _REJECTED:
        if not rejected:
            return SkipReason.REJECTED
    elif sample.status != _APPROVED:
        return SkipReason.NOT_APPROVED
    if sample.instance_id and sample.instance_id in excluded_instances:
        return SkipReason.EXCLUDED_INSTANCE
    if sample.bucket == _UNPARSED:
        return SkipReason.UNPARSED
    if sample.flags & _INFRA:
        return SkipReason.INFRA_ERROR
    if sample.flags & _LEAK and not sample.leak_cleared:
        return SkipReason.LEAK
    if sample.contaminated:
        return SkipReason.CONTAMINATED
    if sample.duplicate_of is not None:
        return SkipReason.DUPLICATE
    return SkipReason.OVER_CAP if sample.over_cap else None


_OPENS_THINKING = re.compile(f"{OPENS_THINKING}|{OPENS_TOLD}")


def answer_reason(text: str) -> SkipReason | None:
    """Return why a text cannot be an assistant turn, chosen or rejected, or None."""
    start = text.lstrip()
    if not start:
        return SkipReason.NO_ANSWER
    return SkipReason.THINKING if _OPENS_THINKING.match(start) else None


def pair_reason(chosen: str, rejected: str) -> SkipReason | None:
    """Return why two answers make no preference, or None. Space at the ends is no difference."""
    if chosen.strip() == rejected.strip():
        return SkipReason.IDENTICAL
    # Thinking text on one side only would teach a model to tell the sides apart by that alone.
    return answer_reason(rejected)
