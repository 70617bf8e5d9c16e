"""The SHA-256 of a text that a person approves, over one canonical form, so that any later change of it shows."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

_SAID = ("source", "message", "reasoning_content", "tool_calls")


def said_of(step: Mapping[str, Any]) -> dict[str, object]:
    """Return what a step says, calls and observes: what is reviewed and trained on, without times, exit codes and
    figures."""
    said = {name: step[name] for name in _SAID if step.get(name)}
    results = (step.get("observation") or {}).get("results") or ()
    observed = [[result.get("source_call_id"), result.get("content")] for result in results]
    return {**said, "observed": observed} if observed else said


# ASCII only: half of a surrogate pair, which JSON can escape and UTF-8 cannot encode, still has a hash.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def answer_sha256(text: str, *, reasoning: str = "", tool_calls: Sequence[Mapping[str, object]] = ()) -> str:
    """Return the hash of one assistant turn: its text, tool calls and reasoning, each under its own key.

    Empty reasoning and missing calls have no key, so a plain answer has the same hash with and without these columns.
    """
    if not reasoning and not tool_calls:
        # As below; a text by itself is encoded much faster than an object.
        return hashlib.sha256(f'{{"content":{_CANONICAL(text)}}}'.encode()).hexdigest()
    parts: dict[str, object] = {"content": text}
    if reasoning:
        parts["reasoning"] = reasoning
    if tool_calls:
        parts["tool_calls"] = list(tool_calls)
    return _sha256(parts)


def session_sha256(
    steps: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, object]], learned: Sequence[int]
) -> str:
    """Return the hash of a session: what each step says, calls and observes, in their order, the tools, and the
    positions of the steps that are trained on. `steps` are those of ATIF."""
    return _sha256([[said_of(step) for step in steps], list(tools), list(learned)])


def _sha256(value: object) -> str:
    return hashlib.sha256(_CANONICAL(value).encode()).hexdigest()
