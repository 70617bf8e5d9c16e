"""What a row says about its messages: where they come from, how the run ended, and which agent and model ran."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from curation.imports.layouts.account import EMPTY, Fields
from curation.imports.layouts.rows.columns import inside, is_number_as_text, truth_as_text
from curation.imports.layouts.rows.mapping import OUTCOME_WORDS, REWARD, outcome_of
from curation.imports.layouts.session import (
    NO_USAGE,
    NO_VERDICT,
    Json,
    SessionOrigin,
    SessionOutcome,
    SessionUsage,
    VerifierResult,
    is_attempt,
    repo_of,
)
from curation.imports.sources.rows import RowRefused

LONGEST_NAME = 200
# A longer text is no value to filter by.
LONGEST_METADATA = 2_000
_TOO_LONG = f"ignored: a text of more than {LONGEST_METADATA:,} characters, unless it is mapped to metadata"
_NESTED = "ignored: a list or an object, unless it is mapped to metadata"
_IDS = ("traj_id", "trajectory_id", "session_id", "sessionId", "id", "uuid", "custom_id")
_TASKS = ("task_id", "task_name", "task")
_EXAMPLES = ("example_id",)
_GROUPS = ("group", "group_id")
_MODELS = ("model", "model_name", "model_name_or_path")
_AGENTS = ("agent", "agent_name")
# True for a run that solved its task. Other values of these columns are something else.
_SOLVED = (
    *("resolved", "target", "solved", "success", "passed", "verified", "correct"),
    *("is_resolved", "is_solved", "is_success", "is_correct", "task_success"),
)
_REWARDS = ("reward", "rewards", "final_reward", "max_reward", "score", "scores")
# Objects in which rows have the result of their verifier.
_RESULTS = ("reward_info", "result", "test_result", "report", "evaluation", "eval", "eval_result", "info") + (
    *("metadata", "summary"),
)
_OUTPUTS = ("verifier_output", "eval_logs", "test_output")
# How agents end that did what they wanted to.
_GOOD_ENDS = ("submit", "finish", "complete", "success", "done")
_COSTS = ("cost_usd", "total_cost", "total_cost_usd", "instance_cost", "agent_cost", "response_cost")
_INPUTS = ("total_input_tokens", "input_tokens", "total_prompt_tokens", "prompt_tokens", "tokens_sent")
_ANSWERED = ("total_output_tokens", "output_tokens", "total_completion_tokens", "completion_tokens", "tokens_received")
_SECONDS = ("duration_seconds", "total_time", "elapsed_seconds")


class RowMetadata(NamedTuple):
    agent: Json
    origin: SessionOrigin
    verdict: VerifierResult
    usage: SessionUsage
    metadata: Json


def read_surroundings(fields: Fields) -> RowMetadata:
    """Read the columns that nothing was said of yet; short values without a meaning are metadata."""
    for column in ("instance_id", "repo"):
        fields.take(column, column)
    instance_id = name_of(fields, "instance_id")
    left = _Left(fields)
    if left.is_empty:
        repo = name_of(fields, "repo") or repo_of(instance_id)
        return RowMetadata({}, SessionOrigin(instance_id=instance_id, repo=repo), NO_VERDICT, NO_USAGE, {})
    origin = SessionOrigin(
        id=left.name(_IDS, "id"),
        # `task` of verifiers is an environment, of which `example_id` is one task.
        task="/".join(filter(None, (left.name(_TASKS, "task"), left.name(_EXAMPLES, "task")))),
        instance_id=instance_id,
        repo=name_of(fields, "repo") or repo_of(instance_id),
        group=left.name(_GROUPS, "group"),
        attempt=left.attempt(),
    )
    agent = {"model_name": left.model(), "name": left.name(_AGENTS, "agent")}
    verdict = left.verdict()
    usage = SessionUsage(
        input_tokens=left.count(_INPUTS),
        output_tokens=left.count(_ANSWERED),
        cost_usd=left.number(_COSTS, "cost"),
        seconds=left.number(_SECONDS, "usage.seconds"),
    )
    return RowMetadata({key: value for key, value in agent.items() if value}, origin, verdict, usage, left.metadata())


def name_of(row: Mapping[str, Any], column: str) -> str:
    """Return a name, or empty text. Raises `RowRefused` for a value that is none."""
    value = row.get(column)
    if value is None:
        return ""
    if not _is_name(value):
        raise RowRefused(f"{column} is not a text of at most {LONGEST_NAME} characters")
    return str(value)


def _is_name(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) <= LONGEST_NAME


def _is_number(value: object) -> bool:
    return not isinstance(value, bool) and (isinstance(value, int | float) or is_number_as_text(value))


def _is_metadata(value: object) -> bool:
    return len(value) <= LONGEST_METADATA if isinstance(value, str) else isinstance(value, bool | int | float)


def _truth(value: Any) -> bool | None:
    if isinstance(value, bool) or (_is_number(value) and float(value) in (0, 1)):
        return bool(float(value))
    said = OUTCOME_WORDS.get(value.strip().lower()) if isinstance(value, str) else None
    return (
        truth_as_text(value)
        if said not in (SessionOutcome.SOLVED, SessionOutcome.FAILED)
        else said is SessionOutcome.SOLVED
    )


def _reward_of(result: Mapping[str, Any]) -> float | None:
    """Return the value of a grader's result, or None."""
    given = next((result[key] for key in ("score", "value", "passed") if result.get(key) is not None), None)
    if isinstance(given, bool):
        return float(given)
    return float(str(given)) if is_number_as_text(str(given)) else None


class _Left:
    """The columns that nothing was said of yet. Each method takes those that it understands, and leaves the others."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._values = {name: fields[name] for name in fields.left() if fields[name] not in EMPTY}

    @property
    def is_empty(self) -> bool:
        return not self._values

    def take(self, column: str, becomes: str) -> Any:
        self._fields.take(column, becomes)
        return self._values.pop(column)

    def find(self, columns: Sequence[str], fits: Callable[[Any], bool]) -> list[str]:
        return [column for column in columns if column in self._values and fits(self._values[column])]

    def name(self, columns: Sequence[str], becomes: str) -> str:
        found = self.find(columns, _is_name)
        return str(self.take(found[0], becomes)) if found else ""

    def number(self, columns: Sequence[str], becomes: str) -> float | None:
        found = self.find(columns, _is_number)
        return float(self.take(found[0], becomes)) if found else None

    def count(self, columns: Sequence[str]) -> Any:
        """Return a number of tokens, or a figure that is none."""
        found = self.number(columns, "usage")
        if found is None:
            path, found = inside(self._fields, columns, _is_number)
            if path:
                self._fields.became(path, "usage")
        return found

    def model(self) -> str:
        """Return the model in a column, or in an object about the call."""
        if found := self.name(_MODELS, "model"):
            return found
        path, inner = inside(self._fields, ("model", "model_name", "ls_model_name"), _is_name)
        if path:
            self._fields.became(path, "model")
        return str(inner or "")

    def attempt(self) -> int | None:
        found = self.find(("attempt", "trial"), is_attempt)
        return int(self.take(found[0], "attempt")) if found else None

    def metadata(self) -> Json:
        """Return the short values, and say of the others why they are ignored."""
        found = {name: self.take(name, "metadata") for name in self.find(list(self._values), _is_metadata)}
        for name, value in self._values.items():
            self._fields.take(name, _TOO_LONG if isinstance(value, str) else _NESTED)
        return found

    def verdict(self) -> VerifierResult:
        rewards: dict[str, float] = {}
        outcome = self._outcome()
        for column in self.find(_SOLVED, lambda value: _truth(value) is not None):
            rewards[column] = float(bool(_truth(self.take(column, f"reward.{column}"))))
            if outcome is SessionOutcome.UNKNOWN:
                outcome = SessionOutcome.of(rewards[column])
        columns = (*_REWARDS, *(column for column in self._values if column.startswith(REWARD)))
        for column in self.find(columns, _is_number):
            name = column.removeprefix(REWARD)
            rewards[name] = float(self.take(column, f"reward.{name}"))
        for column in self.find(_REWARDS, lambda value: isinstance(value, Mapping)):
            if all(map(_is_number, self._values[column].values())):
                named = self.take(column, ", ".join(f"reward.{name}" for name in self._values[column]))
                rewards |= {str(name): float(number) for name, number in named.items()}
        rewards |= self._listed()
        rewards |= self._nested(rewards)
        if outcome is SessionOutcome.UNKNOWN and (told := next(filter(rewards.__contains__, _SOLVED), "")):
            outcome = SessionOutcome.of(rewards[told])
        # Only a whole reward says how a run ended: what part of one is enough differs between tasks.
        whole = rewards.get("reward", rewards.get("final_reward"))
        if outcome is SessionOutcome.UNKNOWN and whole in (0.0, 1.0):
            outcome = SessionOutcome.of(whole)
        outputs = self.find(_OUTPUTS, lambda value: isinstance(value, str))
        output = self.take(outputs[0], "verifier output") if outputs else ""
        return VerifierResult(outcome, rewards, output, self._exception())

    def _listed(self) -> dict[str, float]:
        """Return the rewards in a list of results with a name each, and the means of LangSmith's feedback."""
        found: dict[str, float] = {}
        for column in self.find(("results", "grades", "scores"), lambda value: isinstance(value, list)):
            for one in self._values[column]:
                value = _reward_of(one) if isinstance(one, Mapping) and isinstance(one.get("name"), str) else None
                if value is not None:
                    found[one["name"]] = value
        for column in self.find(("feedback_stats", "scores"), lambda value: isinstance(value, Mapping)):
            for name, value in self._values[column].items():
                one = value[0] if isinstance(value, list) and len(value) == 1 else None
                mean = value.get("avg") if isinstance(value, Mapping) else one
                if mean is not None and _is_number(mean):
                    found[str(name)] = float(mean)
        for column in {"results", "grades", "scores", "feedback_stats"} & self._values.keys() if found else ():
            self.take(column, ", ".join(f"reward.{name}" for name in found))
        return found

    def _nested(self, known: Mapping[str, float]) -> dict[str, float]:
        """Return the rewards in objects, of a row that has none beside them. The objects are read no further."""
        found: dict[str, float] = {}
        for column in () if known else self.find(_RESULTS, lambda value: isinstance(value, Mapping)):
            for name, value in self._values[column].items():
                if name in _SOLVED and _truth(value) is not None:
                    found[name] = float(bool(_truth(value)))
                elif name in _REWARDS and _is_number(value):
                    found[name] = float(value)
                else:
                    continue
                self._fields.became(f"{column}.{name}", f"reward.{name}")
        return found

    def _outcome(self) -> SessionOutcome:
        found = outcome_of(self._values.get("outcome"))
        if found is not None:
            self.take("outcome", "outcome")
        return found or SessionOutcome.UNKNOWN

    def _exception(self) -> str:
        """Return how the agent ended if it did not submit, such as `exit_cost`. The status is metadata too."""
        status = self._values.get("exit_status")
        if isinstance(status, str) and not status.lower().startswith(_GOOD_ENDS):
            self._fields.became("exit_status", "exception")
            return status
        return ""
