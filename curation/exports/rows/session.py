"""A trajectory as messages. Of a shell, terminal output is the user and typed input the assistant.

Only the recorded steps are read. The raw exchange with the model, with the scaffold's instructions and the model's
prose, is never read by exports.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from curation.exports.formats.row import Preference
from curation.exports.models import FrozenPair
from curation.exports.rows.messages import BadHistory, ExportedMessage, conversation
from curation.exports.rows.queries import ExportedRollout, RejectedSide, read_rejected_sides
from curation.exports.rows.skip_reasons import SkipReason, answer_reason, pair_reason
from curation.imports.layouts.session import Step
from curation.llm.client.tokens import NAMES, Tokens
from curation.samples.models import SampleStatus
from curation.scenarios.models import ScenarioStatus
from curation.trajectories.models import BY_MACHINE, NEVER_NEGATIVE, Outcome, ProcessLabel, Strategy
from curation.trajectories.recorded import RecordedTexts, text_of
from curation.trajectories.shell import action_of
from judging.messages import Message as ChatMessage
from sandbox.agent.pairs import Divergence, PairSide, pair_sides

_WHOLE = Strategy.WHOLE_TRAJECTORY.value
_ADMITTED, _DRY_RUN = ScenarioStatus.ADMITTED.value, ScenarioStatus.DRY_RUN.value
_APPROVED, _INFRA = SampleStatus.APPROVED.value, Outcome.INFRA_ERROR.value
_CORRECT = ProcessLabel.CORRECT.value
_BY_MACHINE = frozenset(outcome.value for outcome in BY_MACHINE)
_NEVER_NEGATIVE = frozenset(outcome.value for outcome in NEVER_NEGATIVE)


def rollout_reason(rollout: ExportedRollout, *, rejected: bool = False) -> SkipReason | None:
    """Return why a trajectory is skipped, or None. The current version of its scenario must be proven by the gate:
    people edit scenarios because something is wrong with them. Of an imported run the approval decides alone. One that
    a person `rejected` need not be kept, but a failure of the machine is no example of anything."""
    if rejected and rollout.outcome in _BY_MACHINE:
        return SkipReason.NO_NEGATIVE
    if rollout.is_imported:
        return None
    if rollout.outcome == _INFRA:
        return SkipReason.INFRA_ERROR
    is_kept = rollout.keep or rejected
    if rollout.scenario_id is None:
        return None if is_kept else SkipReason.NOT_KEPT
    if rollout.scenario_status == _DRY_RUN:
        return SkipReason.DRY_RUN
    if rollout.scenario_status != _ADMITTED:
        return SkipReason.UNGATED
    if rollout.bundle_sha256 != rollout.scenario_sha256:
        return SkipReason.EDITED
    return None if is_kept else SkipReason.NOT_KEPT


class SessionTexts(NamedTuple):
    """A session as it was recorded, with its messages and the position of the step of each."""

    recorded: RecordedTexts
    messages: list[ExportedMessage]
    positions: list[int]

    def first_of(self, step: int) -> int:
        return bisect_left(self.positions, step)

    def text_at(self, step: int) -> str:
        return text_of(cast(ChatMessage, self.messages[self.first_of(step)]))

    def is_learned(self, first: int, end: int) -> bool:
        """Return whether all of the agent's steps from `first` to before `end` are trained on."""
        learned = set(self.recorded.learned)
        steps = self.recorded.steps
        return all(steps[step]["source"] != "agent" or step in learned for step in range(first, end))

    def approved(self) -> list[int]:
        """Return the indexes of the messages that are trained on."""
        learned = set(self.recorded.learned)
        return [
            index
            for index, step in enumerate(self.positions)
            if step in learned and self.messages[index]["role"] == "assistant"
        ]

    def labels(self, values: Mapping[int, float]) -> dict[int, float]:
        """Return, by the index of the message, 1 for a step that a person called correct and 0 for one of another
        label, else its value by a probe."""
        if not values and not self.recorded.marks:
            return {}
        marks = self.recorded.marks.items()
        given = {**values, **{int(step): float(mark["label"] == _CORRECT) for step, mark in marks if mark.get("label")}}
        return {
            index: given[step]
            for index, step in enumerate(self.positions)
            if step in given and self.messages[index]["role"] == "assistant"
        }

    def tokens(self) -> dict[int, Tokens]:
        """Return, by the index of the message, the ids and log-probabilities of the tokens of a step of the agent."""
        metrics = [step.get("metrics") or {} for step in self.recorded.steps]
        if not any(metrics):
            return {}
        return {
            index: {name: metrics[step][name] for name in NAMES if metrics[step].get(name)}
            for index, step in enumerate(self.positions)
            if self.messages[index]["role"] == "assistant" and any(map(metrics[step].get, NAMES))
        }

    def side(self, step: int, *, whole: bool) -> list[ExportedMessage]:
        """Return the message of a step of the agent, or all from there to the last one of the assistant."""
        first = self.first_of(step)
        end = first + 1
        for index in range(first, len(self.messages) if whole else end):
            if self.messages[index]["role"] == "assistant":
                end = index + 1
        return self.messages[first:end]


def session_texts(recorded: RecordedTexts, *, is_shell: bool, reasoning: bool) -> SessionTexts:
    """Return a session as messages. Raises `BadHistory`, and for a shell unless an orientation is followed by
    alternating commands and outputs."""
    if not recorded.steps:
        raise BadHistory(SkipReason.BAD_TURNS)
    if is_shell and not recorded.tools:
        _check_shell(recorded.steps)
    messages, positions = recorded.said()
    return SessionTexts(recorded, conversation(messages, reasoning=reasoning, is_written=True), positions)


def _check_shell(steps: Sequence[Step]) -> None:
    orientation, *commands = steps
    shown = [len((step.get("observation") or {}).get("results", ())) for step in commands]
    if not commands or orientation["source"] != "user" or any(step["source"] != "agent" for step in commands):
        raise BadHistory(SkipReason.BAD_TURNS)
    if any(number != 1 for number in shown[:-1]):
        raise BadHistory(SkipReason.BAD_TURNS)
    for step in commands:
        if reason := answer_reason(step["message"]):
            raise BadHistory(reason)
    if not orientation["message"].strip():
        raise BadHistory(SkipReason.EMPTY_PROMPT)


def ends_in(steps: Sequence[Step], terminal: str) -> bool:
    """Return whether the last step is the command that ended the episode: `exit`, or `panic` with any reason."""
    last = steps[-1]
    return "observation" not in last and bool(terminal) and action_of(last).split(maxsplit=1)[0] == terminal


class Rival(NamedTuple):
    """The rejected side of a pair, or why the pair is skipped. For `at` see `trajectories.models.Pair`."""

    pair_id: int
    strategy: str
    at: int
    side: SessionTexts | SkipReason


class Rivals:
    """The rivals of some trajectories, read while those are passed to `of` in the order of their samples.

    `pairs` are those to read, ordered by sample and pair.
    """

    def __init__(self, pairs: Sequence[FrozenPair], *, reasoning: bool) -> None:
        self._reasoning = reasoning
        self._pairs: dict[int, list[int]] = {}
        for pair in pairs:
            self._pairs.setdefault(pair.sample_id, []).append(pair.pair_id)
        self._rows = read_rejected_sides([pair.pair_id for pair in pairs])
        self._row = next(self._rows, None)

    def of(self, rollout: ExportedRollout) -> list[Rival]:
        return [self._rival(pair_id, rollout) for pair_id in self._pairs.get(rollout.sample_id, ())]

    def _rival(self, pair_id: int, rollout: ExportedRollout) -> Rival:
        while self._row is not None and (self._row.sample_id, self._row.pair_id) < (rollout.sample_id, pair_id):
            self._row = next(self._rows, None)
        row = self._row
        if row is None or row.pair_id != pair_id:
            return Rival(pair_id, "", 0, SkipReason.CHANGED)
        return Rival(pair_id, row.strategy, row.at, self._side(row, rollout))

    def _side(self, row: RejectedSide, rollout: ExportedRollout) -> SessionTexts | SkipReason:
        if row.outcome in _NEVER_NEGATIVE:
            return SkipReason.NO_NEGATIVE
        # Of imported runs a verifier said which one failed, so both may be approved.
        if row.sample_status == _APPROVED and not rollout.is_imported:
            return SkipReason.BOTH_APPROVED
        if row.bundle_sha256 != rollout.bundle_sha256:
            return SkipReason.EDITED
        try:
            return session_texts(row.recorded, is_shell=not rollout.is_imported, reasoning=self._reasoning)
        except BadHistory as bad:
            return bad.reason


def preference(chosen: SessionTexts, rival: Rival) -> Preference | SkipReason:
    """Return the pair as messages, or why it makes no preference. The sides must first differ in a step of the agent,
    at `at` or, of whole trajectories, later.

    First divergence: the shared steps are the prompt, and each side is one message. Whole trajectory: each side is
    everything from `at` up to its last message of the assistant.
    """
    rejected, at, whole = rival.side, rival.at, rival.strategy == _WHOLE
    if isinstance(rejected, SkipReason):
        return rejected
    found = pair_sides(PairSide(chosen.recorded.steps, ""), PairSide(rejected.recorded.steps, ""))
    if not isinstance(found, Divergence) or found.at < at or (found.at > at and not whole):
        return SkipReason.NO_DIVERGENCE
    reason = pair_reason(chosen.text_at(found.at), rejected.text_at(found.at))
    if reason is not None:
        return reason
    end = len(chosen.recorded.steps) if whole else at + 1
    if not chosen.is_learned(at, end):
        return SkipReason.NOT_LEARNED
    prompt = chosen.messages[: chosen.first_of(at)]
    sides = chosen.side(at, whole=whole), rejected.side(at, whole=whole)
    return Preference("scenarios", prompt, *sides, str(rival.pair_id))
