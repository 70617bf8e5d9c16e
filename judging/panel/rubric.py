"""The five dimensions on which a judge compares two answers to one agent turn."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dimension:
    """One question of the rubric. `name` is the key in a judge's reply, `asks` the question in words."""

    name: str
    asks: str


RUBRIC: tuple[Dimension, ...] = (
    Dimension("correctness", "Would this move bring the task closer to a right solution?"),
    Dimension("grounding", "Does it rest on what the history shows, with nothing invented?"),
    Dimension("progress", "Does it advance the task, rather than repeat or stall?"),
    Dimension("protocol", "Is it a THOUGHT plus exactly one bash block with one command?"),
    Dimension("efficiency", "Is it the cheapest sensible step?"),
)

DIMENSIONS: tuple[str, ...] = tuple(dimension.name for dimension in RUBRIC)
