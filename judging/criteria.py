"""A rubric's criteria, and the score (0–1) that a model's reply to them has.

A rubric is a text, which is one criterion, or TOML with `[[criterion]]` as Harbor's rewardkit reads it: types `binary`,
`likert` and `numeric`, weights, and `[scoring]`. Its `[judge]` and the `files` of a criterion, which name a model and
files of a workspace, are not read. Any other table or key is refused: it would change the score.
"""

import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judging.answers.read import split_thinking

TYPES = ("binary", "likert", "numeric")
AGGREGATIONS = ("weighted_mean", "all_pass", "any_pass", "threshold")
_TABLES = {"judge", "criterion", "scoring"}
_KEYS = {"name", "description", "type", "weight", "points", "min", "max", "files"}
_TOML = re.compile(r"^\s*\[\[criterion\]\]", re.MULTILINE)
_OBJECT = re.compile(r"\{.*\}", re.DOTALL)
_NAME = re.compile(r"[a-z0-9_]{1,60}")
# The range of a text without criteria.
_TEXT_MAX = 10
MOST = 1e9


class Unscored(ValueError):
    """The rubric, or the reply, is none; the message says why."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """`low` and `high` are the bounds of a value, which the score maps to 0 and 1. A binary one has 0 and 1."""

    name: str
    description: str
    type: str
    weight: float
    low: float
    high: float

    def schema(self) -> dict[str, object]:
        if self.type == "binary":
            return {"type": "boolean"}
        return {"type": "integer" if self.type == "likert" else "number", "minimum": self.low, "maximum": self.high}

    @property
    def line(self) -> str:
        value = "true or false" if self.type == "binary" else f"{self.low:g} to {self.high:g}"
        return f"- {self.name} ({value}): {self.description}"

    def score(self, value: object) -> float:
        """Raises `Unscored` for a value that the criterion has not."""
        is_wrong_truth = isinstance(value, bool) and self.type != "binary"
        if is_wrong_truth or not isinstance(value, int | float) or not self.low <= value <= self.high:
            raise Unscored(f"{json.dumps(value)[:60]} is no value of {self.name}")
        if self.type != "numeric" and value != round(value):
            raise Unscored(f"{json.dumps(value)[:60]} is no value of {self.name}, which has whole ones")
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Criteria:
    criteria: Sequence[Criterion]
    aggregation: str = "weighted_mean"
    threshold: float = 0.5

    @property
    def text(self) -> str:
        return "\n".join(one.line for one in self.criteria)

    def schema(self) -> dict[str, object]:
        """The reply's JSON schema, in OpenAI's `response_format`."""
        values = {one.name: one.schema() for one in self.criteria} | {"reason": {"type": "string"}}
        shape = {"type": "object", "properties": values, "required": list(values), "additionalProperties": False}
        return {"type": "json_schema", "json_schema": {"name": "score", "strict": True, "schema": shape}}

    def score(self, reply: str) -> tuple[float, str]:
        """Return the score and the model's reason. Raises `Unscored`."""
        found = _OBJECT.search(split_thinking(reply).text)
        try:
            values = json.loads(found[0]) if found else None
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, Mapping):
            raise Unscored("the reply has no JSON object")
        if missing := [one.name for one in self.criteria if one.name not in values]:
            raise Unscored(f"the reply lacks {', '.join(missing)}")
        scores = [one.score(values[one.name]) for one in self.criteria]
        weights = [one.weight for one in self.criteria]
        mean = sum(map(math.prod, zip(scores, weights, strict=True))) / sum(weights)
        aggregated = {
            "weighted_mean": mean,
            "all_pass": float(min(scores) == 1),
            "any_pass": float(max(scores) == 1),
            "threshold": float(mean >= self.threshold),
        }
        return aggregated[self.aggregation], str(values.get("reason") or "")


def read_criteria(text: str) -> Criteria:
    """Raises `Unscored` with the reason."""
    if not _TOML.search(text):
        return Criteria([Criterion("score", text.strip(), "numeric", 1.0, 0.0, _TEXT_MAX)])
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:  # the latter: nested beyond the interpreter's depth
        raise Unscored(f"not TOML: {error}") from None
    given, scoring = document.get("criterion"), document.get("scoring", {})
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in [*given, scoring]):
        raise Unscored("criteria are tables `[[criterion]]`, and the scoring is a table `[scoring]`")
    _refuse_others("the file", document, _TABLES)
    _refuse_others("scoring", scoring, {"aggregation", "threshold"})
    criteria = [_criterion(number, one) for number, one in enumerate(given, 1)]
    if len({one.name for one in criteria}) < len(criteria):
        raise Unscored("two criteria have the same name")
    aggregation = str(scoring.get("aggregation", AGGREGATIONS[0])).replace("-", "_")
    if aggregation not in AGGREGATIONS:
        raise Unscored(f"scoring.aggregation is one of {', '.join(AGGREGATIONS)}")
    return Criteria(criteria, aggregation, _number(scoring, "threshold", 0.5, "scoring"))


def _criterion(number: int, given: Mapping[str, object]) -> Criterion:
    place = f"criterion {number}"
    _refuse_others(place, given, _KEYS)
    kind, description = given.get("type", "binary"), given.get("description")
    name = str(given.get("name") or f"criterion_{number}").lower().replace("-", "_").replace(" ", "_")
    if kind not in TYPES or not isinstance(description, str) or not description.strip():
        raise Unscored(f"{place} needs a description, and a type of {', '.join(TYPES)}")
    if not _NAME.fullmatch(name) or name == "reason":
        raise Unscored(f"{place} has the name {name!r}: letters, digits and _")
    bounds = {
        "binary": (0.0, 1.0),
        "likert": (1.0, _number(given, "points", 5, place)),
        "numeric": (_number(given, "min", 0, place), _number(given, "max", 1, place)),
    }
    low, high = bounds[str(kind)]
    weight = _number(given, "weight", 1, place)
    if not low < high or weight <= 0:
        raise Unscored(f"{place}: its range is empty, or its weight is not above 0")
    return Criterion(name, " ".join(description.split()), str(kind), weight, low, high)


def _refuse_others(place: str, given: Mapping[str, object], known: set[str]) -> None:
    if others := sorted(given.keys() - known):
        raise Unscored(f"{place}: {', '.join(others)} is not known; {', '.join(sorted(known))} are")


def _number(given: Mapping[str, object], name: str, default: float, place: str) -> float:
    value = given.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -MOST <= value <= MOST:
        raise Unscored(f"{place}: {name} is a number of at most {MOST:g}")
    return float(value)
