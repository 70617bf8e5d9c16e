"""Preference pairs: a kept trajectory against a rejected one of the same scenario or task, or why they make no pair.

Steps are those of ATIF. Two steps of an agent are the same if message and tool calls are. What they were shown is the
same but for what differs from machine to machine: times, and the ids of containers and commits.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from sandbox.agent.replay import without_clock

Step = Mapping[str, Any]
FIRST_DIVERGENCE, WHOLE_TRAJECTORY = "first_divergence", "whole_trajectory"
NEVER_NEGATIVE = frozenset({"timeout", "infra_error", "error", "unknown"})
_MACHINE = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{12,64}\b"
    r"|\b0x[0-9a-f]{6,16}\b|\b\d+\.\d+ ?s(?:ec(?:onds)?)?\b"
)


class NoPairReason(StrEnum):
    """Why two trajectories make no pair."""

    INFRA = "the rejected side failed by the machine (timeout, infrastructure), or its outcome is unknown"
    OTHER_BUNDLE = "the scenario was edited between the two, or the server did not say that the task was the same"
    IDENTICAL = "both sides are identical"
    EMPTY_PROMPT = "there is no prompt before the first difference"
    NO_ACTION = "the first difference is not an assistant turn"
    ENDED = "one side had ended where the other went on"


@dataclass(frozen=True, slots=True)
class PairSide:
    """One trajectory: its steps, its outcome, and the scenario bundle it was rolled out with."""

    steps: Sequence[Step]
    outcome: str
    bundle_sha256: str = ""


@dataclass(frozen=True, slots=True)
class Divergence:
    """`at` is the position, in both sides, of the first step of the agent that differs; the chosen side's steps before
    it are the prompt."""

    at: int


def pair_sides(chosen: PairSide, rejected: PairSide, *, strategy: str = FIRST_DIVERGENCE) -> Divergence | NoPairReason:
    """Find where the two sides differ. `first_divergence`: the first action after an equal prefix. `whole_trajectory`:
    everything from the first action on, after an equal beginning."""
    if rejected.outcome in NEVER_NEGATIVE:
        return NoPairReason.INFRA
    if chosen.bundle_sha256 != rejected.bundle_sha256:
        return NoPairReason.OTHER_BUNDLE
    if strategy == WHOLE_TRAJECTORY:
        return _whole(chosen.steps, rejected.steps)
    return _first_divergence(chosen.steps, rejected.steps)


def _first_divergence(chosen: Sequence[Step], rejected: Sequence[Step]) -> Divergence | NoPairReason:
    shorter = min(len(chosen), len(rejected))
    at = next((i for i in range(shorter) if not _is_same(chosen[i], rejected[i])), shorter)
    if at == len(chosen) == len(rejected):
        return NoPairReason.IDENTICAL
    if at == shorter:
        return NoPairReason.ENDED
    if not _acts(chosen[at]) or not _acts(rejected[at]) or _action(chosen[at]) == _action(rejected[at]):
        return NoPairReason.NO_ACTION
    return Divergence(at) if _has_text(chosen[:at]) else NoPairReason.EMPTY_PROMPT


def _whole(chosen: Sequence[Step], rejected: Sequence[Step]) -> Divergence | NoPairReason:
    if len(chosen) == len(rejected) and all(map(_is_same, chosen, rejected)):
        return NoPairReason.IDENTICAL
    at = next((i for i, step in enumerate(chosen) if _acts(step)), len(chosen))
    if len(rejected) < at or not all(map(_is_same, chosen[:at], rejected[:at])):
        return NoPairReason.NO_ACTION
    if min(len(chosen), len(rejected)) <= at:
        return NoPairReason.ENDED
    return Divergence(at) if _has_text(chosen[:at]) else NoPairReason.EMPTY_PROMPT


def _acts(step: Step) -> bool:
    return bool(step["source"] == "agent")


class ComparedStep(NamedTuple):
    """The parts of a step by which it is the same as another."""

    source: object
    action: object
    observed: object


def compared(step: Step) -> ComparedStep:
    return ComparedStep(step["source"], _action(step), _observed(step))


def _is_same(one: Step, other: Step) -> bool:
    return compared(one) == compared(other)


def _action(step: Step) -> tuple[object, ...]:
    """Return the words and calls of an agent, or the words to it."""
    calls = [(call["function_name"], call["arguments"]) for call in step.get("tool_calls") or ()]
    return (step["message"] if _acts(step) else _of_any_machine(step["message"]), calls)


def _observed(step: Step) -> list[object]:
    return [_of_any_machine(result.get("content")) for result in (step.get("observation") or {}).get("results") or ()]


def _of_any_machine(content: object) -> object:
    return _MACHINE.sub("<id>", without_clock(content)) if isinstance(content, str) else content


def _has_text(steps: Sequence[Step]) -> bool:
    told = [content for step in steps for content in (step["message"], *_observed(step))]
    return any(content.strip() if isinstance(content, str) else content for content in told)
