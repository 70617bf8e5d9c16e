"""Preference pairs: a kept trajectory against a rejected one of the same scenario, or why they make no pair.

Turns are compared as a terminal shows them: commands, output and prompts, but no timings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

Turn = Mapping[str, object]
FIRST_DIVERGENCE, WHOLE_TRAJECTORY = "first_divergence", "whole_trajectory"
NEVER_NEGATIVE = frozenset({"timeout", "infra_error"})


class LeftOut(StrEnum):
    """Why two trajectories make no pair."""

    INFRA = "the rejected side failed by the machine (timeout, infrastructure)"
    OTHER_BUNDLE = "the scenario was edited between the two, or the server did not say that the task was the same"
    IDENTICAL = "both sides are identical"
    EMPTY_PROMPT = "there is no prompt before the first difference"
    NO_ACTION = "the first difference is not an assistant turn"
    ENDED = "one side had ended where the other went on"


@dataclass(frozen=True, slots=True)
class Side:
    """One trajectory: its turns, its outcome, and the scenario bundle it was rolled out with."""

    turns: Sequence[Turn]
    outcome: str
    bundle_sha256: str = ""


@dataclass(frozen=True, slots=True)
class Divergence:
    """`at` is the index, in both sides' turns, of the first action that differs; the chosen side's turns before it are
    the prompt."""

    at: int


def pair_sides(chosen: Side, rejected: Side, *, strategy: str = FIRST_DIVERGENCE) -> Divergence | LeftOut:
    """Find where the two sides differ. `first_divergence`: the first action after an equal prefix. `whole_trajectory`:
    everything from the first action on, after an equal orientation."""
    if rejected.outcome in NEVER_NEGATIVE:
        return LeftOut.INFRA
    if chosen.bundle_sha256 != rejected.bundle_sha256:
        return LeftOut.OTHER_BUNDLE
    if strategy == WHOLE_TRAJECTORY:
        return _whole(chosen.turns, rejected.turns)
    return _first_divergence(chosen.turns, rejected.turns)


def _first_divergence(chosen: Sequence[Turn], rejected: Sequence[Turn]) -> Divergence | LeftOut:
    shorter = min(len(chosen), len(rejected))
    at = next((i for i in range(shorter) if _seen(chosen[i]) != _seen(rejected[i])), shorter)
    if at == len(chosen) == len(rejected):
        return LeftOut.IDENTICAL
    if at == shorter:
        return LeftOut.ENDED
    if chosen[at]["kind"] != "action" or rejected[at]["kind"] != "action":
        return LeftOut.NO_ACTION
    return Divergence(at) if _has_text(chosen[:at]) else LeftOut.EMPTY_PROMPT


def _whole(chosen: Sequence[Turn], rejected: Sequence[Turn]) -> Divergence | LeftOut:
    if [_seen(turn) for turn in chosen] == [_seen(turn) for turn in rejected]:
        return LeftOut.IDENTICAL
    at = next((i for i, turn in enumerate(chosen) if turn["kind"] == "action"), len(chosen))
    if [_seen(turn) for turn in chosen[:at]] != [_seen(turn) for turn in rejected[:at]]:
        return LeftOut.NO_ACTION
    if min(len(chosen), len(rejected)) <= at:
        return LeftOut.ENDED
    return Divergence(at) if _has_text(chosen[:at]) else LeftOut.EMPTY_PROMPT


def _has_text(turns: Sequence[Turn]) -> bool:
    return any(str(turn["text"]).strip() for turn in turns)


def _seen(turn: Turn) -> tuple[object, object]:
    return turn["kind"], turn["text"]
