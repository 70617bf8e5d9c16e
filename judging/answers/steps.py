"""What a step of a session says. Steps are those of ATIF."""

from collections.abc import Mapping
from typing import Any

_SAID = ("source", "message", "reasoning_content", "tool_calls")


def said_of(step: Mapping[str, Any]) -> dict[str, object]:
    """Return what a step says, calls and observes: what is reviewed and trained on, without times, exit codes and
    figures."""
    said = {name: step[name] for name in _SAID if step.get(name)}
    results = (step.get("observation") or {}).get("results") or ()
    observed = [[result.get("source_call_id"), result.get("content")] for result in results]
    return {**said, "observed": observed} if observed else said
