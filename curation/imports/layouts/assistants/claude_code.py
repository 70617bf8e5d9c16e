"""Logs of Claude Code: the file of a session with those of its subagents, and streams of `--output-format stream-json`.

A line has a message, or a part of one: the lines of one answer share its id. Subagents are in files of their own, or in
lines that name the call which started them; in old files, in lines of a chain of their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from curation.imports.layouts.account import DocumentReading, Fields
from curation.imports.layouts.messages.documents import read_with_facts
from curation.imports.layouts.messages.metrics import model_of, usage_of
from curation.imports.layouts.session import AgentSession, Json, SessionOrigin, VerifierResult, agent_of
from curation.imports.sources.rows import RowRefused
from judging.messages import content_of

NAME = "Claude Code log"
AGENT = "claude-code"
_TURNS = ("user", "assistant")
_NO_TURN = "ignored: it is no turn"
_BECOMES = {
    **dict.fromkeys(("type", "message", "role"), "steps"),
    **dict.fromkeys(("uuid", "parentUuid", "isSidechain", "agentId", "parent_tool_use_id"), "steps"),
    **dict.fromkeys(("cwd", "gitBranch"), "metadata"),
    **dict.fromkeys(("sessionId", "session_id"), "id"),
    "timestamp": "timestamp",
    "version": "agent",
    "costUSD": "usage",
    "toolUseResult": "ignored: the message has it",
    "tool_use_result": "ignored: the message has it",
}
_OF_INIT = {"model": "agent", "claude_code_version": "agent", "cwd": "metadata", "tools": "metadata"}
_OF_RESULT = {
    **dict.fromkeys(("total_cost_usd", "usage", "duration_ms"), "usage"),
    **dict.fromkeys(("subtype", "is_error"), "exception"),
    "result": "ignored: the last message has it",
}
_OF_MESSAGE = frozenset(("role", "content", "id", "type", "model", "usage"))
_LINES = {"result": "usage", "system/init": "agent", "summary": "metadata"}
_ABOUT = ("sessionId", "session_id", "version", "claude_code_version", "model")


def is_of_subagent(name: str) -> bool:
    """Whether a file may be of a subagent, by its name."""
    return name.rpartition("/")[2].startswith("agent-") and name.endswith(".jsonl")


def is_line(line: Mapping[str, Any]) -> bool:
    """Whether a line is one of such a log."""
    kind, message = line.get("type"), line.get("message")
    if kind == "system" and line.get("subtype") == "init":
        return isinstance(line.get("session_id"), str)
    if kind not in _TURNS or not isinstance(message, dict) or "content" not in message:
        return False
    return not {"sessionId", "session_id", "uuid", "timestamp"}.isdisjoint(line)


def read(lines: Sequence[Json], subagents: Iterable[Sequence[Json]] = ()) -> DocumentReading:
    """Return the session of a log. `subagents` have the lines of the files beside it. Raises `RowRefused`."""
    fields = Fields({})
    chains = _chains(lines)
    for inner in subagents:
        for key, chain in _chains(inner).items():
            chains.setdefault(key or f"subagent-{len(chains)}", []).extend(chain)
    # A file of a subagent alone has no other lines.
    main = _session(chains.pop("" if "" in chains else next(iter(chains), ""), []), fields)
    if not main.steps:
        raise RowRefused("the log has no messages of a user or an assistant")
    inner_sessions = [
        replace(_session(chain, fields), document={"trajectory_id": key}) for key, chain in chains.items()
    ]
    found = [session for session in inner_sessions if session.steps]
    _refer(main, lines, found)
    return DocumentReading([replace(main, subagents=found)], fields.account())


def _chains(lines: Iterable[Json]) -> dict[str, list[Json]]:
    """Return the lines of the session itself, by an empty name, and those of each subagent."""
    chains: dict[str, list[Json]] = {}
    roots: dict[str, str] = {}
    for line in lines:
        key = ""
        if line.get("parent_tool_use_id"):
            key = str(line["parent_tool_use_id"])
        elif line.get("isSidechain"):
            identifier = str(line.get("uuid"))
            key = str(line.get("agentId") or roots.get(str(line.get("parentUuid")), identifier))
            roots[identifier] = key
        chains.setdefault(key, []).append(line)
    return chains


def _session(lines: Sequence[Json], fields: Fields) -> AgentSession:
    entries: dict[str, Json] = {}
    about: Json = {}
    metadata: Json = {}
    totals: Json = {}
    exception = ""
    seconds = None
    for number, line in enumerate(_without_rewound(lines, fields)):
        kind, message = str(line.get("type", "lines without a type")), line.get("message")
        kind = f"system/{line.get('subtype')}" if kind == "system" else kind
        words = {"system/init": _OF_INIT, "result": _OF_RESULT}.get(kind, {})
        is_turn = kind in _TURNS and isinstance(message, dict)
        fields.became(kind, "steps" if is_turn else _LINES.get(kind, _NO_TURN))
        for name, value in line.items():
            if name != "type" and (is_turn or words):
                word = words.get(name) or _BECOMES.get(name, "ignored")
                fields.became(f"{kind}.{name}", word)
                if word == "metadata":
                    metadata.setdefault(name, value)
        about = {name: line[name] for name in _ABOUT if line.get(name)} | about
        if kind == "result":
            totals = {"total_cost_usd": line["total_cost_usd"]} if line.get("total_cost_usd") is not None else {}
            seconds = line["duration_ms"] / 1000 if isinstance(line.get("duration_ms"), int) else None
            exception = str(line.get("subtype") or "error") if line.get("is_error") else exception
        elif kind == "summary":
            metadata["summary"] = line.get("summary")
        elif is_turn and isinstance(message, dict):
            if line.get("isApiErrorMessage"):
                fields.became(f"{kind}.isApiErrorMessage", "exception: no model wrote this message")
                exception = content_of(message)
                continue
            fields.ignore_rest(message, _OF_MESSAGE, f"{kind}.message")
            _add(entries, line, message, str(message.get("id") or f"line {number}"))
            exception = "" if kind == "assistant" else exception
    said = [({"role": entry["role"], "content": entry["content"]}, entry) for entry in entries.values()]
    messages = read_with_facts(said, "message", fields)
    version = about.get("version") or about.get("claude_code_version")
    usage = usage_of(messages.steps, totals)
    return AgentSession(
        layout=NAME,
        steps=messages.steps,
        agent=agent_of(AGENT, str(version or ""), model_of(messages.steps) or about.get("model")),
        origin=SessionOrigin(id=str(about.get("sessionId") or about.get("session_id") or "")),
        verdict=VerifierResult(exception=exception),
        usage=usage if seconds is None else replace(usage, seconds=seconds),
        metadata=metadata,
    )


def _add(entries: dict[str, Json], line: Json, message: Json, identifier: str) -> None:
    """Add a message, or the parts of one that has begun."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    known = entries.get(identifier) if line["type"] == "assistant" else None
    if known is not None:
        known["content"] += parts
        known["usage"] = message.get("usage") or known["usage"]
        return
    facts = {"timestamp": line.get("timestamp"), "cost": line.get("costUSD"), "usage": message.get("usage")}
    entries[identifier] = {"role": line["type"], "content": [*parts], "model": message.get("model"), **facts}


def _without_rewound(lines: Sequence[Json], fields: Fields) -> list[Json]:
    """Return the lines without those after a prompt that a person took back: one whose parent has a later prompt."""
    prompts: dict[str, str] = {}
    gone: set[str] = set()
    for line in lines:
        parent = str(line.get("parentUuid") or "")
        if parent and _is_prompt(line):
            if parent in prompts:
                gone.add(prompts[parent])
            prompts[parent] = str(line.get("uuid"))
    kept = []
    for line in lines if gone else ():
        if not gone.isdisjoint((str(line.get("uuid")), str(line.get("parentUuid")))):
            gone.add(str(line.get("uuid")))
            fields.became(f"{line.get('type')}.uuid", "ignored: a person took this message back")
        else:
            kept.append(line)
    return kept if gone else list(lines)


def _is_prompt(line: Json) -> bool:
    message = line.get("message")
    if line.get("type") != "user" or line.get("isMeta") or not isinstance(message, dict):
        return False
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return not any(isinstance(part, dict) and part.get("type") == "tool_result" for part in parts)


def _refer(main: AgentSession, lines: Sequence[Json], inner: Sequence[AgentSession]) -> None:
    """Name each subagent at the result of the call that started it."""
    by_agent: dict[str, str] = {}
    for line in lines:
        told = line.get("toolUseResult") or line.get("tool_use_result")
        if isinstance(told, dict) and told.get("agentId"):
            content = line["message"].get("content") if isinstance(line.get("message"), dict) else ()
            answered = (str(part.get("tool_use_id")) for part in content or () if isinstance(part, dict))
            by_agent |= dict.fromkeys(answered, str(told["agentId"]))
    ids = {session.document["trajectory_id"]: session for session in inner}
    asked = {str(session.steps[0]["message"]): name for name, session in ids.items()}
    for step in main.steps:
        calls = {call["tool_call_id"]: call for call in step.get("tool_calls", ())}
        for result in (step.get("observation") or {"results": ()})["results"]:
            identifier = result.get("source_call_id")
            prompt = (calls.get(identifier) or {"arguments": {}})["arguments"].get("prompt")
            named = by_agent.get(identifier) or (identifier if identifier in ids else asked.get(str(prompt)))
            if named in ids:
                result["subagent_trajectory_ref"] = [{"trajectory_id": named}]
