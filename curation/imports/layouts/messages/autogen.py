"""Messages and events of AutoGen as plain ones: `source` names the agent or the user, `type` the kind."""

from collections.abc import Mapping
from typing import Any

_CALLS, _RESULTS, _THOUGHT = "ToolCallRequestEvent", "ToolCallExecutionEvent", "ThoughtEvent"
_TEXTS = ("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage", "ToolCallSummaryMessage")
KINDS = frozenset((_CALLS, _RESULTS, _THOUGHT, *_TEXTS))
_USERS = ("user", "user_proxy", "userproxy", "human", "admin")


def is_event(entry: object) -> bool:
    if not isinstance(entry, Mapping) or not {"source", "content"} <= entry.keys():
        return False
    return isinstance(entry.get("type"), str) and entry["type"] in KINDS


def plain(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message of an event, with its other fields. Results are parts, as Anthropic has them."""
    kind, source, content = entry["type"], str(entry["source"]), entry["content"]
    found = {name: value for name, value in entry.items() if name not in ("type", "source", "content")}
    found |= {"role": "user" if source.lower() in _USERS else "assistant", "name": source}
    if kind == _CALLS:
        return found | {"content": "", "tool_calls": content}
    if kind == _RESULTS:
        results = content if isinstance(content, list) else [content]
        parts = [{**one, "type": "tool_result"} if isinstance(one, Mapping) else one for one in results]
        return found | {"role": "tool", "content": parts}
    return found | ({"content": "", "reasoning_content": content} if kind == _THOUGHT else {"content": content})
