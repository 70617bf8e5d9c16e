"""Messages of AutoGen and steps of Antigravity, whose `source` names the agent or the user and `type` the kind, and
messages of LangChain and of logs, in their wrappers, as plain ones.
"""

from collections.abc import Mapping
from typing import Any

_CALLS, _RESULTS, _THOUGHT = "ToolCallRequestEvent", "ToolCallExecutionEvent", "ThoughtEvent"
_TEXTS = ("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage", "ToolCallSummaryMessage")
# Messages to and from a model, in the state of an agent.
_OF_MODELS = {"SystemMessage": "system", "UserMessage": "user", "AssistantMessage": "assistant"}
_EXECUTED = "FunctionExecutionResultMessage"
KINDS = frozenset((_CALLS, _RESULTS, _THOUGHT, *_TEXTS, *_OF_MODELS, _EXECUTED))
_USERS = ("user", "user_proxy", "userproxy", "human", "admin")
# Of Antigravity.
_SOURCES = {"USER_EXPLICIT": "user", "USER_IMPLICIT": "user", "MODEL": "assistant", "SYSTEM": "system"}
_OF_STEPS = frozenset(("content", "tool_calls", "thinking"))
_OF_LOGS = frozenset(("content", "parts"))
# Of LangChain.
_TYPES = {"Human": "human", "AI": "ai", "System": "system", "Tool": "tool", "Function": "function"}


def is_event(entry: object) -> bool:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("type"), str):
        return False
    if "step_index" in entry:
        return str(entry.get("source")) in _SOURCES and not _OF_STEPS.isdisjoint(entry)
    return (
        "content" in entry
        and entry["type"] in KINDS
        and ("source" in entry or entry["type"] in (_EXECUTED, "SystemMessage"))
    )


def plain(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message of an event, with its other fields. Results are parts, as Anthropic has them."""
    if "step_index" in entry:
        return _of_antigravity(entry)
    kind, source, content = entry["type"], str(entry.get("source", "")), entry["content"]
    found = {name: value for name, value in entry.items() if name not in ("type", "source", "content")}
    found |= {"role": "user" if source.lower() in _USERS else "assistant", "name": source}
    if kind in _OF_MODELS:
        found |= {"role": _OF_MODELS[kind], "reasoning_content": found.pop("thought", None)}
    if kind == _CALLS or (kind == "AssistantMessage" and isinstance(content, list)):
        return found | {"content": "", "tool_calls": content}
    if kind in (_RESULTS, _EXECUTED):
        results = content if isinstance(content, list) else [content]
        parts = [{**one, "type": "tool_result"} if isinstance(one, Mapping) else one for one in results]
        return found | {"role": "tool", "content": parts}
    return found | ({"content": "", "reasoning_content": content} if kind == _THOUGHT else {"content": content})


def _of_antigravity(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a step of Antigravity as a message. The model's steps but its plans are results of the calls in these."""
    found = {name: value for name, value in entry.items() if name not in ("type", "source", "thinking")}
    role = _SOURCES[entry["source"]]
    if role != "assistant" or entry["type"] == "PLANNER_RESPONSE":
        return found | {"role": role, "content": entry.get("content") or "", "reasoning_content": entry.get("thinking")}
    if not entry.get("tool_calls"):
        return found | {"role": "tool", "name": entry["type"]}
    return found | {"role": role, "content": [{"type": "tool_result", "content": entry.get("content")}]}


def unwrapped(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message of `{"type": "human", "data": …}`, of a serialised `HumanMessage`, or of an entry of a log in
    its `message`; or the entry as it is."""
    if entry.get("lc") is not None and isinstance(inner := entry.get("kwargs"), Mapping):
        name = entry["id"][-1] if isinstance(entry.get("id"), list) and entry["id"] else ""
        word = str(name).removesuffix("Chunk").removesuffix("Message")
        return unwrapped({"type": _TYPES.get(word, word), **inner})
    if isinstance(inner := entry.get("message"), Mapping) and not _OF_LOGS.isdisjoint(inner) and "content" not in entry:
        around = {key: value for key, value in entry.items() if key not in ("message", "type")}
        return {"role": entry.get("role", entry.get("type")), **around, **inner}
    if isinstance(inner := entry.get("data"), Mapping) and "content" in inner and "content" not in entry:
        return unwrapped({"type": entry.get("type"), **inner})
    more = entry.get("additional_kwargs")
    if not isinstance(more, Mapping):
        return entry
    found = {key: value for key, value in entry.items() if key != "additional_kwargs"}
    # LangChain repeats the calls of the provider in its own form.
    return found | {key: value for key, value in more.items() if not found.get(key)}
