"""Messages of Vercel's AI SDK as it shows them: one of an assistant has all steps up to the next of the user."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from curation.imports.layouts.session import Json

FIELDS = frozenset(("parts", "toolInvocations"))
_STEP, _DYNAMIC, _OLD = "step-start", "dynamic-tool", "tool-invocation"
_OF_MODELS = frozenset(("tool-call", "tool-result"))


def fits(entry: Mapping[str, Any]) -> bool:
    parts, calls = entry.get("parts"), entry.get("toolInvocations")
    if isinstance(calls, list) and calls and all(isinstance(call, Mapping) for call in calls):
        return True
    return isinstance(parts, list) and any(isinstance(part, Mapping) and _is_own(part.get("type")) for part in parts)


def plain(entry: Mapping[str, Any]) -> Iterator[Json]:
    """Yield the message of each step, and of each result of a tool. Other fields are of the first."""
    rest = {name: value for name, value in entry.items() if name not in ("parts", "content", "toolInvocations")}
    parts = entry.get("parts")
    if not isinstance(parts, list):  # up to version 4
        calls = [{"type": _OLD, "toolInvocation": one} for one in entry["toolInvocations"]]
        parts = [*calls, {"type": "text", "text": entry.get("content") or ""}]
    said: Json = {"content": [], "tool_calls": []}
    results: list[Json] = []
    for part in [*parts, {"type": _STEP}]:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == _STEP or (results and not _is_tool(kind)):
            if said["content"] or said["tool_calls"]:
                yield {**rest, **said}
                rest = {"role": entry.get("role")}
            yield from results
            said, results = {"content": [], "tool_calls": []}, []
        if _is_tool(kind):
            inner = part.get("toolInvocation")
            call = inner if isinstance(inner, Mapping) else part
            name = call.get("toolName") or str(kind).removeprefix("tool-")
            given, identifier = call.get("input", call.get("args")), call.get("toolCallId")
            said["tool_calls"].append({"id": identifier, "name": name, "arguments": given})
            found = next((call[key] for key in ("output", "result", "errorText") if call.get(key) is not None), None)
            if found is not None:
                result = {"type": "tool_result", "content": found if isinstance(found, str) else _json(found)}
                failed = {"is_error": True} if call.get("errorText") else {}
                results.append({"role": "tool", "content": [{**result, **failed, "tool_use_id": identifier}]})
        elif kind == "file" and str(part.get("mediaType", part.get("mimeType"))).startswith("image/"):
            said["content"].append({"type": "image", "image": part.get("url") or part.get("data")})
        elif kind != _STEP:
            said["content"].append(part)


def _is_tool(kind: Any) -> bool:
    return isinstance(kind, str) and (kind == _DYNAMIC or (kind.startswith("tool-") and kind not in _OF_MODELS))


def _is_own(kind: Any) -> bool:
    return _is_tool(kind) or kind == _STEP or (isinstance(kind, str) and kind.startswith(("source-", "data-")))


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
