"""The rubric: the dimensions on which judges and people compare two answers, one line of text each."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

MOST_DIMENSIONS = 12
_LINE = re.compile(r"(?P<name>[a-z][a-z_]{0,29}):[ \t]+(?P<asks>\S.{0,299})")
_RESERVED = frozenset({"reason"})


@dataclass(frozen=True, slots=True)
class Dimension:
    """One question of a rubric. `name` is the key in a judge's reply, `asks` the question in words."""

    name: str
    asks: str


# The dimensions for the turns of an agent, in the order in which tables show them.
DIMENSIONS: tuple[str, ...] = ("correctness", "grounding", "progress", "protocol", "efficiency")


@lru_cache(maxsize=64)
def read_rubric(text: str) -> tuple[Dimension, ...]:
    """Read a rubric: one `name: question` per line. Raises ValueError that names the line."""
    found: dict[str, Dimension] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(
                f"Line {number} is not `name: question`. A name has lower-case letters and _, at most 30; a question "
                "has at most 300 characters."
            )
        if match["name"] in found or match["name"] in _RESERVED:
            raise ValueError(f"Line {number} has the name {match['name']!r}, which is taken.")
        found[match["name"]] = Dimension(match["name"], match["asks"])
    if not 0 < len(found) <= MOST_DIMENSIONS:
        raise ValueError(f"A rubric has 1 to {MOST_DIMENSIONS} dimensions, not {len(found)}.")
    return tuple(found.values())


def names_of(rubric: Sequence[Dimension]) -> tuple[str, ...]:
    return tuple(dimension.name for dimension in rubric)


def complete(weights: Mapping[str, float] | None, dimensions: Sequence[str]) -> dict[str, float] | None:
    """Return a weight for every dimension, 1 for those without one; None if there are no weights."""
    return {name: weights.get(name, 1.0) for name in dimensions} if weights else None


def rubric_instructions(rubric: Sequence[Dimension]) -> str:
    """Return the part of a judge's instructions that names the dimensions and the form of the reply."""
    asked = "\n".join(f"- {dimension.name}: {dimension.asks}" for dimension in rubric)
    example = {dimension.name: (1, 2, 0)[place % 3] for place, dimension in enumerate(rubric)}
    reply = json.dumps({**example, "reason": "one sentence that says what decided it"})
    return (
        f"Judge each dimension for itself. For each say which answer is better, or a draw when you see no difference "
        f"that matters:\n{asked}\n\nReply with one JSON object on one line and nothing else:\n{reply}\n"
        f"where 1 means that answer 1 is better, 2 that answer 2 is better, 0 a draw. All keys are needed.\n"
    )


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of dimensions as tables show them: those for turns of an agent first, then by name."""
    return tuple(sorted(set(names), key=lambda name: (name not in DIMENSIONS, _place(name), name)))


def _place(name: str) -> int:
    return DIMENSIONS.index(name) if name in DIMENSIONS else 0
