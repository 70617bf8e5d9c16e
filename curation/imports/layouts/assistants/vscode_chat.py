"""Sessions of the chat of VS Code, as of Copilot: its export `chat.json`, and the files in `chatSessions`.

A request has the text of the person, and the parts of the answer that the program shows. The result may have the prompt
as the model saw it in `renderedUserMessage`, and the model's texts and calls in `toolCallRounds`: then these are read.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from curation.imports.layouts.account import DocumentReading, Fields
from curation.imports.layouts.messages.documents import MessageAndFacts, one_session, read_with_facts
from curation.imports.layouts.messages.metrics import model_of
from curation.imports.layouts.session import Json, SessionOrigin, VerifierResult, agent_of
from curation.imports.sources.rows import RowRefused

NAME = "VS Code chat session"
_SET, _PUSH, _DELETE = 1, 2, 3
_REPEATED = "ignored: toolCallRounds has it"
# Parts of an answer that have a text, though the model did not write it.
_SHOWN = frozenset(
    ("progressMessage", "progressTask", "progressTaskSerialized", "warning", "confirmation", "command", "codeblockUri")
    + ("elicitation", "elicitation2", "elicitationSerialized", "disabledClaudeHooks", "hook", "planReview")
)
_TEXTS, _CALL = (None, "markdownContent", "markdownVuln", "inlineReference", "thinking"), "toolInvocationSerialized"
_OF_PART = ("kind", "value", "content", "inlineReference", "name", "toolId", "toolCallId") + (
    *("toolSpecificData", "resultDetails"),
)
_OF_REQUEST = {
    **dict.fromkeys(("message", "response", "result"), "steps"),
    "timestamp": "timestamp",
    "modelId": "agent",
    "completionTokens": "usage",
    "isCanceled": "exception",
    "shouldBeRemovedOnSend": "ignored: a person took the request back",
}
_OF_RESULT = {"timings": "timestamp", "usage": "usage", "metadata": "steps", "errorDetails": "exception"}
_OF_METADATA = {
    **dict.fromkeys(("toolCallRounds", "toolCallResults", "renderedUserMessage", "renderedGlobalContext"), "steps"),
    **dict.fromkeys(("promptTokens", "outputTokens"), "usage"),
    "resolvedModel": "agent",
}
_OF_ROUND = dict.fromkeys(("response", "toolCalls", "thinking", "timestamp"), "steps")


def fits(document: Mapping[str, Any]) -> bool:
    requests, is_named = document.get("requests"), "responderUsername" in document
    if not isinstance(requests, list) or not (is_named or {"version", "creationDate"} <= document.keys()):
        return False
    return all(isinstance(one, dict) and "message" in one for one in requests)


def is_head(line: Mapping[str, Any]) -> bool:
    """Whether a file of lines that begins with this one is a journal of such a session."""
    session = line.get("v")
    return line.get("kind") == 0 and isinstance(session, dict) and isinstance(session.get("requests"), list)


def read_lines(lines: Iterable[Json]) -> DocumentReading:
    """Return the session of a journal, whose lines change the session of the first. Raises `RowRefused`."""
    document: Json = {}
    for line in lines:
        kind, keys = line.get("kind"), line.get("k")
        if not keys:
            document = line["v"]
            continue
        *above, last = keys
        changed: Any = document
        for key in above:
            changed = changed[key]
        if kind == _PUSH:
            before = changed[last] if isinstance(changed, list) else changed.get(last) or []
            changed[last] = before[: line.get("i", len(before))] + (line.get("v") or [])
        elif kind == _SET and isinstance(changed, list) and last == len(changed):
            changed.append(line.get("v"))
        elif kind == _SET:
            changed[last] = line.get("v")
        elif kind == _DELETE:
            del changed[last]
        else:
            raise RowRefused(f"a line has the kind {kind!r}, which is not known"[:300])
    return read(document)


def read(document: Mapping[str, Any]) -> DocumentReading:
    """Return the session of a file, or none if nothing was asked in it. Raises `RowRefused`."""
    fields = Fields(document)
    messages: list[MessageAndFacts] = []
    exception, context = "", ""
    for index, request in enumerate(fields.take("requests", "steps")):
        fields.became_inside(f"requests.{index}", request, _OF_REQUEST)
        if not request.get("shouldBeRemovedOnSend"):
            result = request.get("result") or {}
            given = _flat((result.get("metadata") or {}).get("renderedGlobalContext"))
            if given and given != context:
                context = given
                messages.append(({"role": "user", "content": given}, {}))
            messages += _turn(request, result, f"requests.{index}", fields)
            failed = result.get("errorDetails") or {}
            exception = failed.get("message") or ("canceled" if request.get("isCanceled") else "")
    if not messages:
        return DocumentReading([], fields.account(), without_trajectory=1)
    found = read_with_facts(messages, "requests", fields)
    agent = agent_of("vscode-chat", model=model_of(found.steps))
    origin = SessionOrigin(id=str(fields.take("sessionId", "id") or ""))
    return one_session(NAME, agent, found, fields, origin=origin, verdict=VerifierResult(exception=exception))


def _turn(request: Json, result: Json, path: str, fields: Fields) -> Iterator[MessageAndFacts]:
    """Yield the messages of a request: of the person, and of the model with the results of its calls."""
    asked, metadata = request["message"] or "", result.get("metadata") or {}
    seen = [_part(part) for part in metadata.get("renderedUserMessage") or ()]
    text = asked if isinstance(asked, str) else asked.get("text")
    if isinstance(asked, dict):
        fields.ignore_rest(asked, ("text",), f"{path}.message")
    yield {"role": "user", "content": list(filter(None, seen)) or text}, {"timestamp": request.get("timestamp")}
    fields.became_inside(f"{path}.result", result, _OF_RESULT)
    fields.became_inside(f"{path}.result.metadata", metadata, _OF_METADATA)
    rounds = list(_rounds(metadata, f"{path}.result.metadata", fields))
    shown = list(_shown(request.get("response") or [], f"{path}.response", fields, has_rounds=bool(rounds)))
    messages = _completed(rounds, shown) if rounds else shown
    model = str(metadata.get("resolvedModel") or request.get("modelId") or "").removeprefix("copilot/")
    facts: list[Json] = [{"timestamp": one.pop("timestamp", None), "model": model} for one in messages]
    if answers := [fact for fact, one in zip(facts, messages, strict=True) if one["role"] == "assistant"]:
        used, elapsed = result.get("usage") or {}, (result.get("timings") or {}).get("totalElapsed")
        answers[-1]["usage"] = {"completionTokens": request.get("completionTokens"), **used, **metadata}
        if isinstance(elapsed, int | float) and isinstance(began := request.get("timestamp"), int | float):
            answers[-1]["timestamp"] = answers[-1]["timestamp"] or began + elapsed
    yield from zip(messages, facts, strict=True)


def _part(part: Any) -> Json | None:
    """Return a part of the prompt that the model saw, or None for a mark of its cache."""
    if isinstance(part, dict) and part.get("imageUrl"):
        return {"type": "image_url", "image_url": {"url": part["imageUrl"].get("url")}}
    return {"type": "text", "text": text} if (text := _flat(part)) else None


def _rounds(metadata: Json, path: str, fields: Fields) -> Iterator[Json]:
    """Yield the answers of the model and the results of their calls."""
    results = metadata.get("toolCallResults") or {}
    for index, one in enumerate(metadata.get("toolCallRounds") or []):
        fields.became_inside(f"{path}.toolCallRounds.{index}", one, _OF_ROUND)
        calls = one.get("toolCalls") or []
        thought = _flat(one.get("thinking"))
        said: Json = {"role": "assistant", "content": one.get("response") or "", "tool_calls": calls}
        yield said | {"reasoning_content": thought, "timestamp": one.get("timestamp")}
        for call in calls:
            if call.get("id") in results:
                yield {"role": "tool", "tool_call_id": call["id"], "content": _flat(results[call["id"]])}


def _completed(rounds: list[Json], shown: list[Json]) -> list[Json]:
    """Return the rounds with the text and the thinking that are only shown."""
    text = "".join(one["content"] for one in shown if one["role"] == "assistant")
    thoughts = "\n\n".join(filter(None, (one.get("reasoning_content") for one in shown)))
    if thoughts and not any(one.get("reasoning_content") for one in rounds):
        rounds[0]["reasoning_content"] = thoughts
    if text and not any(one["content"] for one in rounds if one["role"] == "assistant"):
        return [*rounds, {"role": "assistant", "content": text}]
    return rounds


def _shown(parts: list[Any], path: str, fields: Fields, *, has_rounds: bool) -> Iterator[Json]:
    """Yield the messages of the parts that the program shows of an answer. Calls end a message, with their results."""
    answer: Json = {"role": "assistant", "content": "", "reasoning_content": ""}
    said, results = {**answer, "tool_calls": []}, list[Json]()
    for index, part in enumerate(parts):
        kind = part.get("kind") if isinstance(part, dict) else None
        place, becomes = f"{path}.{kind or 'value'}", _REPEATED if has_rounds else "steps"
        if kind == _CALL:
            said["tool_calls"].append(_call(part))
            results += _result(part)
        elif kind in _TEXTS:
            if said["tool_calls"]:
                yield from (said, *results)
                said, results = {**answer, "tool_calls": []}, []
            name = "reasoning_content" if kind == "thinking" else "content"
            said[name] += _named(part) if kind == "inlineReference" else _flat(part)
        elif kind in _SHOWN or {"value", "content"}.isdisjoint(part):
            becomes = "ignored: the program shows it"
        else:
            raise RowRefused(f"{path}.{index} is a part of the kind {kind!r}, which is not known"[:300])
        if becomes == "steps" and isinstance(part, dict):
            fields.ignore_rest(part, _OF_PART, place)
        fields.became(place, becomes)
    if any(said[name] for name in ("content", "reasoning_content", "tool_calls")):
        yield from (said, *results)


def _call(part: Json) -> Json:
    about, details = part.get("toolSpecificData") or {}, part.get("resultDetails")
    given = details.get("input") if isinstance(details, dict) else None
    command = about.get("commandLine") or about.get("command")
    line = command.get("original") if isinstance(command, dict) else command
    arguments = about.get("rawInput") or ({"command": line} if line else given or {})
    return {"id": part.get("toolCallId"), "name": str(part.get("toolId") or "tool"), "arguments": arguments}


def _result(part: Json) -> Iterator[Json]:
    details, about = part.get("resultDetails"), part.get("toolSpecificData") or {}
    found = details.get("output") if isinstance(details, dict) else about.get("terminalCommandOutput")
    if text := _flat(found):
        failed = isinstance(details, dict) and details.get("isError")
        yield {"role": "tool", "tool_call_id": part.get("toolCallId"), "content": text, "is_error": failed}


def _named(part: Json) -> str:
    """Return the name of a file or a symbol that a text refers to."""
    inner = part.get("inlineReference") or {}
    uri = inner.get("uri") or inner.get("location", {}).get("uri") or inner
    return f"`{part.get('name') or inner.get('name') or str(uri.get('path', '')).rpartition('/')[2]}`"


def _flat(value: Any) -> str:
    """Return the text of a part, of a result, or of the tree of a prompt, whose nodes may begin a line."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(_flat, value))
    if not isinstance(value, dict):
        return ""
    inner = next((value[name] for name in ("text", "value", "content", "node", "children") if value.get(name)), "")
    return "\n" * bool(value.get("lineBreakBefore")) + _flat(inner)
