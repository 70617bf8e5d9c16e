"""Sessions of Gemini CLI and opencode: messages in a form of their own, each call with its result."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from curation.imports.layouts.account import DocumentReading, Fields
from curation.imports.layouts.messages.documents import MessageAndFacts, one_session, read_with_facts
from curation.imports.layouts.session import Json, SessionOrigin, VerifierResult, agent_of
from curation.imports.sources.rows import RowRefused

GEMINI, OPENCODE = "Gemini CLI session", "opencode session"
_UNSEEN = "ignored: the model does not see it"
# Messages of the program to the person.
_SAID_BY_PROGRAM = frozenset(("info", "error", "warning", "quit", "help", "about", "stats"))
# What becomes of the fields of a message, a call and its state; steps have those without a word. Others are ignored.
_OF_GEMINI = {
    **dict.fromkeys(("type", "content", "thoughts", "toolCalls"), ""),
    "tokens": "usage",
    "model": "agent",
    "timestamp": "timestamp",
}
_OF_STATS = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens", "cached": "cached_tokens"}
_OF_CALL = dict.fromkeys(("id", "name", "args", "result", "status"), "")
_OF_INFO = {
    **dict.fromkeys(("role", "system"), ""),
    **dict.fromkeys(("tokens", "cost"), "usage"),
    **dict.fromkeys(("modelID", "model"), "agent"),
    "error": "exception",
    "time": "timestamp",
}
_OF_PART = dict.fromkeys(("type", "text", "callID", "tool", "state", "mime", "url"), "")
_OF_STATE = dict.fromkeys(("input", "output", "error", "status"), "")
# Parts of opencode that are no text: steps, states of files, and what the program did.
_PARTS_LEFT_OUT = frozenset(
    ("step-start", "step-finish", "snapshot", "patch", "agent", "retry", "compaction", "subtask")
)


def fits_gemini(document: Mapping[str, Any]) -> bool:
    messages = document.get("messages")
    if not isinstance(messages, list) or "sessionId" not in document:
        return False
    return any(isinstance(one, dict) and one.get("type") == "gemini" for one in messages)


def is_gemini_head(line: Mapping[str, Any]) -> bool:
    """Whether a file of lines that begins with this one is a session of Gemini CLI."""
    return {"sessionId", "projectHash"} <= line.keys()


def fits_opencode(document: Mapping[str, Any]) -> bool:
    messages = document.get("messages")
    if not isinstance(messages, list) or not isinstance(document.get("info"), dict):
        return False
    return all(isinstance(one, dict) and {"info", "parts"} <= one.keys() for one in messages)


def read_gemini(document: Mapping[str, Any]) -> DocumentReading:
    """Return the session of a file of Gemini CLI. Raises `RowRefused`."""
    fields = Fields(document)
    messages: list[MessageAndFacts] = []
    model = ""
    for index, one in enumerate(fields.take("messages", "steps")):
        kind, content, path = one.get("type"), one.get("content"), f"messages.{index}"
        fields.became_inside(path, one, _OF_GEMINI)
        facts = {name: one.get(name) for name in ("timestamp", "model", "tokens")}
        if kind == "user":
            messages.append(({"role": "user", "content": content}, facts))
        elif kind == "gemini":
            model = one.get("model") or model
            thoughts = [
                f"{thought.get('subject', '')}\n{thought.get('description', '')}"
                for thought in one.get("thoughts") or []
            ]
            calls = one.get("toolCalls") or []
            for place, call in enumerate(calls):
                fields.became_inside(f"{path}.toolCalls.{place}", call, _OF_CALL)
            answers = [(call, _answer_of(call.get("result"))) for call in calls]
            messages += _answered(
                content, thoughts, [(_call(c.get("id"), c["name"], c.get("args"), c), a) for c, a in answers], facts
            )
        elif kind in _SAID_BY_PROGRAM:
            fields.became(f"messages.{index}.{kind}", _UNSEEN)
        else:
            raise RowRefused(f"messages.{index} has the type {kind!r}, which is not known"[:300])
    stats = fields.take("stats", "usage") or {}
    fields.ignore_rest(stats, _OF_STATS, "stats")
    verdict = VerifierResult(exception=fields.take("exception", "exception") or "")
    return one_session(
        GEMINI,
        agent_of("gemini-cli", model=model),
        read_with_facts(messages, "messages", fields),
        fields,
        origin=SessionOrigin(id=str(fields.take("sessionId", "id"))),
        verdict=verdict,
        totals={f"total_{total}": stats[name] for name, total in _OF_STATS.items() if stats.get(name) is not None},
    )


def gemini_session(lines: Iterable[Mapping[str, Any]]) -> Json:
    """Return the session of a file of lines, which replace messages of the same id, take some back, or change the
    fields of the session. `rewound_messages` is the number of those that were taken back. Raises `RowRefused`."""
    session: Json = {}
    messages: dict[str, Any] = {}
    for line in lines:
        if "$rewindTo" in line:
            ids = [*messages]
            undone = ids[ids.index(line["$rewindTo"]) :] if line["$rewindTo"] in ids else ids
            messages = {key: one for key, one in messages.items() if key not in undone}
            session["rewound_messages"] = session.get("rewound_messages", 0) + len(undone)
        elif "type" in line and "id" in line:
            messages[str(line["id"])] = line
        else:
            changed = line.get("$set", line)
            given = changed.get("messages", []) if isinstance(changed, dict) else None
            if not isinstance(given, list) or not all(isinstance(one, dict) and "id" in one for one in given):
                raise RowRefused("a line has no fields of a session, or messages without an id")
            messages = {str(one["id"]): one for one in given} if "messages" in changed else messages
            session |= {name: value for name, value in changed.items() if name != "messages"}
    return session | {"messages": [*messages.values()]}


def read_opencode(document: Mapping[str, Any]) -> DocumentReading:
    """Return the session that opencode exports. Raises `RowRefused`."""
    fields = Fields(document)
    about = fields.take("info", "metadata")
    messages: list[MessageAndFacts] = []
    model, exception, system = "", "", ""
    for index, one in enumerate(fields.take("messages", "steps")):
        info, path = one["info"], f"messages.{index}.parts"
        fields.became_inside(f"messages.{index}.info", info, _OF_INFO)
        texts: list[Json] = []
        thoughts: list[str] = []
        calls: list[tuple[Json, str | None]] = []
        for place, part in enumerate(one["parts"]):
            kind = part.get("type")
            fields.became_inside(f"{path}.{place}", part, _OF_PART)
            if kind == "text":
                texts.append({"type": "text", "text": part.get("text")})
            elif kind == "reasoning":
                thoughts.append(part.get("text") or "")
            elif kind == "tool":
                state = part.get("state") or {}
                fields.became_inside(f"{path}.{place}.state", state, _OF_STATE)
                answer = state.get("output", state.get("error"))
                calls.append((_call(part.get("callID"), part.get("tool"), state.get("input"), state), answer))
            elif kind == "file" and str(part.get("mime")).startswith("image/"):
                texts.append({"type": "image_url", "image_url": {"url": part.get("url")}})
            elif kind == "file" or kind in _PARTS_LEFT_OUT:
                fields.became(
                    f"{path}.{place}.{kind}", _UNSEEN if kind != "file" else "ignored: a text beside it has the file"
                )
            else:
                raise RowRefused(f"{path}.{place} has the type {kind!r}, which is not known"[:300])
        used = info.get("modelID") or (info.get("model") or {}).get("modelID")
        facts = {"timestamp": (info.get("time") or {}).get("created"), "model": used}
        if info.get("role") == "assistant":
            model = used or model
            error = info.get("error") or {}
            exception = ": ".join(filter(None, (error.get("name"), (error.get("data") or {}).get("message"))))
            facts |= {"tokens": info.get("tokens"), "cost": info.get("cost")}
            messages += _answered(texts, thoughts, calls, facts)
        else:
            if info.get("system") and info["system"] != system:
                system = info["system"]
                messages.append(({"role": "system", "content": system}, {}))
            messages.append(({"role": info.get("role"), "content": texts}, facts))
    return one_session(
        OPENCODE,
        agent_of("opencode", str(about.get("version") or ""), model),
        read_with_facts(messages, "messages", fields),
        fields,
        origin=SessionOrigin(id=str(about.get("id") or "")),
        verdict=VerifierResult(exception=exception),
        metadata={"info": about},
    )


def _answered(
    content: Any, thoughts: list[str], calls: list[tuple[Json, str | None]], facts: Json
) -> list[MessageAndFacts]:
    """Return the message of an answer with its facts, and one for the result of each call that ended."""
    message: Json = {"role": "assistant", "content": content or ""}
    if thoughts:
        message["reasoning_content"] = "\n\n".join(thoughts)
    if calls:
        message["tool_calls"] = [call for call, _ in calls]
    results: list[MessageAndFacts] = [
        ({"role": "tool", "tool_call_id": call["id"], "content": answer, "status": call["status"]}, {})
        for call, answer in calls
        if answer is not None
    ]
    return [(message, facts), *results]


def _call(identifier: Any, name: Any, arguments: Any, ended: Mapping[str, Any]) -> Json:
    function = {"name": name, "arguments": arguments or {}}
    return {"id": str(identifier or ""), "function": function, "status": ended.get("status")}


def _answer_of(result: Any) -> str | None:
    if result is None or isinstance(result, str):
        return result
    texts = []
    for part in result if isinstance(result, list) else [result]:
        answer = part.get("functionResponse") if isinstance(part, dict) else None
        value = (answer or {}).get("response", part if isinstance(part, str) else (part or {}).get("text"))
        if isinstance(value, dict) and len(value) == 1:
            (value,) = value.values()
        texts.append(value if isinstance(value, str) else orjson.dumps(value).decode())
    return "\n".join(texts)
