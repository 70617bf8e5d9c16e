"""The columns of a data set by a person: where its messages are, and what its columns and roles mean."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from curation.imports.layouts.account import Account
from curation.imports.layouts.session import Json
from curation.imports.sources.rows import RowRefused

REWARD = "reward."
# Each meaning, and the column in which rows have it that need no mapping.
MEANINGS = {
    **{name: name for name in ("system", "tools", "prompt", "completion", "chosen", "rejected", "label")},
    **{name: name for name in ("repo", "group", "attempt", "model", "agent", "outcome")},
    **{"id": "traj_id", "task": "task_id", "instance": "instance_id", "exception": "exit_status"},
    **{"verifier_output": "verifier_output", "cost": "cost_usd"},
}
Role = Literal["system", "user", "agent", "tool", "call", "ignored"]


@dataclass(frozen=True, slots=True)
class Applied:
    """A row with the columns that every reader knows. `names` has their names in the source; `metadata` and `account`
    are those of the columns that were taken out."""

    row: Json
    roles: Mapping[str, str] | None = None
    names: dict[str, str] = field(default_factory=dict)
    metadata: Json = field(default_factory=dict)
    account: Account = field(default_factory=Account)


class RowMapping(BaseModel):
    """A mapping, applied before the layout of a row is recognised. Paths have dots: `info.messages`."""

    model_config = ConfigDict(extra="forbid")

    messages: str = Field("", description="The path to the list of messages.")
    columns: dict[str, str] = Field(
        default_factory=dict,
        description="The meaning of columns by their paths: one of "
        f"{', '.join(f'`{name}`' for name in MEANINGS)}, `reward.NAME`, `metadata`, `ignored`.",
    )
    roles: dict[str, Role] = Field(default_factory=dict, description="The role that the data set's own roles mean.")

    @field_validator("columns")
    @classmethod
    def _known(cls, columns: dict[str, str]) -> dict[str, str]:
        for path, meaning in columns.items():
            is_reward = meaning.startswith(REWARD) and len(meaning) > len(REWARD)
            if not is_reward and meaning not in {*MEANINGS, "metadata", "ignored"}:
                raise ValueError(f"{path} has the meaning {meaning!r}, which is not known")
        return columns

    def apply(self, row: Json) -> Applied:
        """Return the row with its columns moved. Raises `RowRefused` for a row without the messages."""
        applied = Applied(dict(row), self.roles or None)
        moved: Json = {}
        if self.messages:
            found = _taken(applied.row, self.messages)
            if found is None:
                raise RowRefused(f"no messages at {self.messages}, where the mapping has them")
            moved["messages"] = found
            applied.names["messages"] = self.messages
        for path, meaning in self.columns.items():
            value = _taken(applied.row, path)
            if value is None:
                continue
            if meaning in ("metadata", "ignored"):
                applied.account.count(path, meaning)
                if meaning == "metadata":
                    applied.metadata[path] = value
                continue
            column = MEANINGS.get(meaning, meaning)
            moved[column] = _reward(value, path) if meaning.startswith(REWARD) else value
            applied.names[column] = path
        applied.row.update(moved)
        return applied


def _reward(value: Any, path: str) -> float:
    if not isinstance(value, bool | int | float):
        raise RowRefused(f"{path} is mapped to a reward, but it is not a number")
    return float(value)


def _taken(row: Json, path: str) -> Any:
    """Take the value at a path out of the row, whose objects on the way are copied; None if it is missing."""
    if path in row:
        return row.pop(path)
    name, _, rest = path.partition(".")
    inner = row.get(name)
    if not rest or not isinstance(inner, Mapping):
        return None
    row[name] = dict(inner)
    return _taken(row[name], rest)
