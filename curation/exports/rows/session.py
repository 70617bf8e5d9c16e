"""A trajectory as messages: terminal output is the user, typed input is the assistant.

Only the recorded turns are read. The raw exchange with the model, with the scaffold's instructions and the model's
prose, is never read by exports.
"""

from collections.abc import Sequence
from typing import NamedTuple

from curation.exports.rows.messages import BadHistory, Message
from curation.exports.rows.queries import PairKey, Rollout, read_rejected_sides
from curation.exports.rows.skip_reasons import SkipReason, answer_reason, pair_reason
from curation.samples.models import Status as SampleStatus
from curation.scenarios.models import Status as ScenarioStatus
from curation.trajectories.models import NEVER_NEGATIVE, Outcome, Strategy

_WHOLE = Strategy.WHOLE_TRAJECTORY.value
_ADMITTED, _DRY_RUN = ScenarioStatus.ADMITTED.value, ScenarioStatus.DRY_RUN.value
_APPROVED, _INFRA = SampleStatus.APPROVED.value, Outcome.INFRA_ERROR.value
_NEVER_NEGATIVE = frozenset(outcome.value for outcome in NEVER_NEGATIVE)


class Rival(NamedTuple):
    """The rejected side of a pair, or why the pair is skipped. For `at` see `trajectories.models.Pair`."""

    pair_id: int
    strategy: str
    at: int
    messages: list[Message]
    reason: SkipReason | None


class Preference(NamedTuple):
    """A prompt with a preferred and a rejected continuation."""

    prompt: list[Message]
    chosen: list[Message]
    rejected: list[Message]


def rollout_reason(rollout: Rollout) -> SkipReason | None:
    """Return why a trajectory is skipped, or None. The current version of its scenario must be proven by the gate:
    people edit scenarios because something is wrong with them."""
    if rollout.outcome == _INFRA:
        return SkipReason.INFRA_ERROR
    if rollout.scenario_id is None:
        return None if rollout.keep else SkipReason.NOT_KEPT
    if rollout.scenario_status == _DRY_RUN:
        return SkipReason.DRY_RUN
    if rollout.scenario_status != _ADMITTED:
        return SkipReason.UNGATED
    if rollout.bundle_sha256 != rollout.scenario_sha256:
        return SkipReason.EDITED
    return None if rollout.keep else SkipReason.NOT_KEPT


def session_messages(turns: object) -> list[Message]:
    """Return turns in deploy format as messages. Raises `BadHistory` unless an orientation is followed by alternating
    commands and outputs. Keys other than kind and text are dropped."""
    if not isinstance(turns, list) or len(turns) < 2:
        raise BadHistory(SkipReason.BAD_TURNS)
    messages: list[Message] = []
    for number, turn in enumerate(turns):
        expected = "action" if number % 2 else "output" if number else "orientation"
        if not isinstance(turn, dict) or turn.get("kind") != expected:
            raise BadHistory(SkipReason.BAD_TURNS)
        text = turn.get("text")
        if not isinstance(text, str):
            raise BadHistory(SkipReason.BAD_TURNS)
        if expected == "action" and (reason := answer_reason(text)):
            raise BadHistory(reason)
        messages.append({"role": "assistant" if expected == "action" else "user", "content": text})
    if not messages[0]["content"].strip():
        raise BadHistory(SkipReason.EMPTY_PROMPT)
    return messages


def ends_in(messages: list[Message], terminal: str) -> bool:
    """Return whether the last message is the command that ended the episode: `exit`, or `panic` with any reason."""
    last = messages[-1]
    return last["role"] == "assistant" and bool(terminal) and last["content"].split(maxsplit=1)[0] == terminal


class Rivals:
    """The rivals of some trajectories, read while those are passed to `of` in the order of their samples.

    `keys` are the pairs to read, ordered by sample and pair.
    """

    def __init__(self, keys: Sequence[PairKey]) -> None:
        self._pairs: dict[int, list[int]] = {}
        for sample_id, pair_id in keys:
            self._pairs.setdefault(sample_id, []).append(pair_id)
        self._rows = read_rejected_sides([key.pair_id for key in keys])
        self._row = next(self._rows, None)

    def of(self, rollout: Rollout) -> list[Rival]:
        return [self._rival(pair_id, rollout) for pair_id in self._pairs.get(rollout.sample_id, ())]

    def _rival(self, pair_id: int, rollout: Rollout) -> Rival:
        while self._row is not None and (self._row.sample_id, self._row.pair_id) < (rollout.sample_id, pair_id):
            self._row = next(self._rows, None)
        row = self._row
        if row is None or row.pair_id != pair_id:
            return Rival(pair_id, "", 0, [], SkipReason.CHANGED)
        messages: list[Message] = []
        reason = None
        if row.outcome in _NEVER_NEGATIVE:
            reason = SkipReason.NO_NEGATIVE
        elif row.sample_status == _APPROVED:
            reason = SkipReason.BOTH_APPROVED
        elif row.bundle_sha256 != rollout.bundle_sha256:
            reason = SkipReason.EDITED
        else:
            try:
                messages = session_messages(row.turns)
            except BadHistory as bad:
                reason = bad.reason
        return Rival(pair_id, row.strategy, row.at, messages, reason)


def preference(chosen: list[Message], rival: Rival) -> Preference | SkipReason:
    """Return the pair as messages, or why it makes no preference. The sides must first differ in a command, at `at` or
    later.

    First divergence: the shared turns are the prompt, and each side is one command. Whole trajectory: the orientation
    is the prompt, and each side is everything up to its last command.
    """
    if rival.reason is not None:
        return rival.reason
    rejected, at, whole = rival.messages, rival.at, rival.strategy == _WHOLE
    shorter = min(len(chosen), len(rejected))
    differ = next((number for number in range(shorter) if chosen[number] != rejected[number]), shorter)
    if differ == shorter or differ % 2 == 0 or differ < at or at % 2 == 0 or (differ > at and not whole):
        return SkipReason.NO_DIVERGENCE
    reason = pair_reason(chosen[differ]["content"], rejected[differ]["content"])
    if reason is not None:
        return reason
    if whole:
        # A side must end with the assistant, so a last output is dropped.
        end = len(rejected) - len(rejected) % 2
        return Preference(chosen[:at], chosen[at:], rejected[at:end])
    return Preference(chosen[:at], chosen[at : at + 1], rejected[at : at + 1])
