"""What a row says about its messages: where they come from, how the run ended, and which agent and model ran."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curation.imports.layouts.account import EMPTY, Fields
from curation.imports.layouts.mapping import REWARD
from curation.imports.layouts.repositories import repo_of
from curation.imports.layouts.session import Json, Origin, Outcome, Usage, Verdict
from curation.imports.sources.rows import RowRefused

LONGEST_NAME = 200
# A longer text is no value to filter by.
LONGEST_METADATA = 2_000
_IDS = ("traj_id", "trajectory_id", "id", "uuid")
_TASKS = ("task_id", "task_name", "task")
_GROUPS = ("group", "group_id")
_MODELS = ("model", "model_name", "model_name_or_path")
_AGENTS = ("agent", "agent_name")
# True for a run that solved its task. Other values of these columns are something else.
_SOLVED = ("resolved", "target", "solved", "success", "is_success", "passed", "verified")
_REWARDS = ("reward", "rewards", "score", "scores")
_OUTPUTS = ("verifier_output", "eval_logs", "test_output")
_COSTS = ("cost_usd", "total_cost", "instance_cost")


@dataclass(frozen=True, slots=True)
class Surroundings:
    agent: Json
    origin: Origin
    verdict: Verdict
    usage: Usage
    metadata: Json


def read_surroundings(fields: Fields) -> Surroundings:
    """Read the columns that nothing was said of yet; short values without a meaning are metadata."""
    for column in ("instance_id", "repo"):
        fields.take(column, column)
    instance_id = name_of(fields, "instance_id")
    origin = Origin(
        id=_named(fields, _IDS, "id"),
        task=_named(fields, _TASKS, "task"),
        instance_id=instance_id,
        repo=name_of(fields, "repo") or repo_of(instance_id),
        group=_named(fields, _GROUPS, "group"),
        attempt=_attempt(fields),
    )
    agent = {"model_name": _named(fields, _MODELS, "model"), "name": _named(fields, _AGENTS, "agent")}
    verdict = _verdict(fields)
    cost = _number(fields, _COSTS, "cost")
    metadata = {name: fields.take(name, "metadata") for name in fields.left() if _is_metadata(fields[name])}
    return Surroundings(
        {key: value for key, value in agent.items() if value}, origin, verdict, Usage(cost_usd=cost), metadata
    )


def name_of(row: Mapping[str, Any], column: str) -> str:
    """Return a name, or empty text. Raises `RowRefused` for a value that is none."""
    value = row.get(column)
    if value is None:
        return ""
    if not _is_name(value):
        raise RowRefused(f"{column} is not a text of at most {LONGEST_NAME} characters")
    return str(value)


def _named(fields: Fields, columns: Sequence[str], becomes: str) -> str:
    """Return the first name. A column with another value is left."""
    for column in _left(fields, columns):
        if _is_name(fields[column]):
            return str(fields.take(column, becomes))
    return ""


def _left(fields: Fields, columns: Sequence[str]) -> Iterator[str]:
    left = fields.left()
    return (column for column in columns if column in left and fields[column] not in EMPTY)


def _is_name(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) <= LONGEST_NAME


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_metadata(value: object) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= LONGEST_METADATA
    return isinstance(value, bool | int | float)


def _attempt(fields: Fields) -> int | None:
    value = fields.get("attempt")
    return fields.take("attempt", "attempt") if isinstance(value, int) and not isinstance(value, bool) else None


def _number(fields: Fields, columns: Sequence[str], becomes: str) -> float | None:
    for column in _left(fields, columns):
        if _is_number(fields[column]):
            return float(fields.take(column, becomes))
    return None


def _verdict(fields: Fields) -> Verdict:
    rewards: dict[str, float] = {}
    outcome = _outcome(fields)
    for column in _left(fields, _SOLVED):
        if (is_solved := _truth(fields[column])) is not None:
            fields.take(column, f"reward.{column}")
            rewards[column] = float(is_solved)
            if outcome is Outcome.UNKNOWN:
                outcome = Outcome.SOLVED if is_solved else Outcome.FAILED
    named = [column for column in fields if column.startswith(REWARD)]
    for column in _left(fields, (*_REWARDS, *named)):
        value, name = fields[column], column.removeprefix(REWARD)
        if _is_number(value):
            rewards[name] = float(fields.take(column, f"reward.{name}"))
        elif isinstance(value, Mapping) and value and all(_is_number(number) for number in value.values()):
            fields.take(column, ", ".join(f"reward.{name}" for name in value))
            rewards |= {str(name): float(number) for name, number in value.items()}
    # Only a whole reward says how a run ended: what part of one is enough differs between tasks.
    if outcome is Outcome.UNKNOWN and rewards.get("reward") in (0.0, 1.0):
        outcome = Outcome.SOLVED if rewards["reward"] else Outcome.FAILED
    output = next((column for column in _left(fields, _OUTPUTS) if isinstance(fields[column], str)), "")
    return Verdict(outcome, rewards, fields.take(output, "verifier output") if output else "", _exception(fields))


def _truth(value: Any) -> bool | None:
    return bool(value) if isinstance(value, bool) or (_is_number(value) and value in (0, 1)) else None


def _outcome(fields: Fields) -> Outcome:
    value = fields.get("outcome")
    if (is_solved := _truth(value)) is not None:
        fields.take("outcome", "outcome")
        return Outcome.SOLVED if is_solved else Outcome.FAILED
    if isinstance(value, str) and value.lower() in set(Outcome):
        return Outcome(fields.take("outcome", "outcome").lower())
    return Outcome.UNKNOWN


def _exception(fields: Fields) -> str:
    """Return how the agent ended if it did not submit, such as `exit_cost`. The status is metadata too."""
    status = fields.get("exit_status")
    if isinstance(status, str) and status and not status.lower().startswith("submitted"):
        fields.became("exit_status", "exception")
        return status
    return ""
