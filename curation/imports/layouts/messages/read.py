"""Messages of every format as steps: OpenAI Chat and Responses, Anthropic, Gemini, Harmony, sharegpt, ms-swift,
LangChain, OpenTelemetry.

A message is known by its own fields, so a list may have messages of several formats. A role, part or mark that is not
known refuses the row, and a field that has no place in a step is in the account as ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from curation.imports.layouts.account import EMPTY, IGNORED, Fields
from curation.imports.layouts.messages import vercel
from curation.imports.layouts.messages.calls import ARGUMENTS, decoded, read_call
from curation.imports.layouts.messages.content import MessageContent, ToolResult, read_content, read_result, thought_of
from curation.imports.layouts.messages.frameworks import is_event, plain, unwrapped
from curation.imports.layouts.messages.items import HOSTED, ITEMS, UNSEEN, add_channel, add_item, add_message
from curation.imports.layouts.messages.metrics import FACTS, add_facts
from curation.imports.layouts.messages.steps import CALL, Steps, may_think, split_thinking
from curation.imports.layouts.messages.written_calls import calls_after_text, calls_in_text, may_call, results_in_text
from curation.imports.layouts.session import Json, Step
from curation.imports.sources.rows import RowRefused
from curation.web.text.storable import parse_inner

Entry = Mapping[str, Any]
# Each role and what it is here. `call` is a turn of an agent whose text is the JSON of tool calls.
ROLES = {
    **dict.fromkeys(("system", "developer", "_system_prompt"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "gpt", "model", "agent", "bot", "chatgpt", "chatbot"), "agent"),
    **dict.fromkeys(("function_call", "tool_call", "tool-call"), "call"),
    **{"tool-response": "tool", "toolResult": "tool", "toolresult": "tool", "tool_result": "tool"},
    **dict.fromkeys(("tool", "function", "function_response", "observation", "tool_response", "ipython"), "tool"),
}
# The keys by which formats mark the messages that a trainer learns from. A false `loss` means context.
MARKS = ("train", "weight", "training", "loss", "loss_mask")
# The mark that is true of trained messages in some sets, and of those that are left out in others.
_MASK = "mask"
# Marks of parts of a message, which a step has no place for.
_PARTIAL_MARKS = ("train_detail", "training_detail")
# Marks of which it is not known what they mean.
_UNKNOWN_MARKS = ("loss_weight", "trainable", "masked", "is_masked", "learn")
_MARK_KEYS = frozenset((*MARKS, *_PARTIAL_MARKS, *_UNKNOWN_MARKS))
_REASONING = ("reasoning_content", "reasoning", "thinking", "reasoning_details", "thoughts", "tool_plan")
_ITEMS = ITEMS | HOSTED.keys() | UNSEEN
_CALLS = frozenset(("tool_calls", "function_call", "invalid_tool_calls"))
_CONTENTS = ("content", "text", "value", "parts")
_WRAPPED = frozenset(("kwargs", "data", "additional_kwargs", "message"))
_KNOWN = frozenset(
    (*MARKS, *_PARTIAL_MARKS, *_REASONING, *_CONTENTS, "role", "from", "sender", "type", "author", "name", "refusal")
    + ("tool_calls", "function_call", "invalid_tool_calls", "tool_call_id", "call_id", "is_error", "status")
    + ("toolCallId", "toolName", "isError", "channel", "recipient", "content_type", "system_prompt")
)
# Fields that are read of items alone.
_OF_ITEMS = _KNOWN | frozenset(
    ("output", "outputs", "results", "result", "queries", "code", "operation", "action", "summary", "function")
    + tuple(ARGUMENTS)
)
# Fields of which a message has one, so that another one beside it is not read.
_ONCE = (*_CONTENTS, "refusal")


@dataclass(slots=True)
class Messages:
    """`learned` has the marks of training by position. `positions` has, for each message of the source, that of the
    last step after it."""

    steps: list[Step]
    learned: dict[int, bool]
    positions: list[int]


def read_messages(given: Any, path: str, fields: Fields, roles: Mapping[str, str] | None = None) -> Messages:
    """Return the steps of a list of messages, which may be JSON text, and account for the fields inside it.

    `roles` are those that a person has mapped to `system`, `user`, `agent`, `tool`, `call` or `ignored`. Raises
    `RowRefused` with the path and name of what is not known.
    """
    known = ROLES if roles is None else {**ROLES, **roles}
    reader = _Reader(fields, known)
    positions = []
    entries = listed(given, path)
    if any(isinstance(entry, dict) and entry.get(_MASK) is not None for entry in entries):
        entries = _unmasked(entries, path, known)
    for index, entry in enumerate(entries):
        reader.add(entry, f"{path}.{index}")
        positions.append(len(reader.steps.steps) - 1)
    return Messages(reader.steps.steps, reader.steps.learned, positions)


def listed(given: Any, path: str) -> list[Any]:
    """Return a list, which may be JSON text. Raises `RowRefused`."""
    if isinstance(given, str):
        try:
            given = parse_inner(given)
        except ValueError as error:
            raise RowRefused(f"column {path} is text that is not JSON: {error}") from None
    if not isinstance(given, list):
        raise RowRefused(f"column {path} is not a list of messages")
    return given


def read_mark(entry: Entry, path: str) -> bool | None:
    """Return whether a trainer learns the message, or None without a mark. Raises `RowRefused`."""
    if _MARK_KEYS.isdisjoint(entry):
        return None
    for key in _PARTIAL_MARKS:
        if entry.get(key):
            raise RowRefused(f"{path}.{key} marks parts of a message, and only whole messages are known")
    for key in _UNKNOWN_MARKS:
        if entry.get(key) is not None:
            raise RowRefused(
                f"{path}.{key} marks a message in a way that is not known: name it `train`, which is 0 or 1"
            )
    values = [entry[key] for key in MARKS if entry.get(key) is not None]
    if any(value not in (0, 1) for value in values):
        raise RowRefused(f"{path} has a mark of training that is neither 0 nor 1")
    return bool(values[0]) if values else None


class _Reader:
    def __init__(self, fields: Fields, roles: Mapping[str, str]) -> None:
        self.steps = Steps()
        self._fields = fields
        self._roles = roles

    def add(self, given: Any, path: str) -> None:
        entry = given if isinstance(given, dict) else decoded(given)
        if isinstance(entry, str):
            raise RowRefused(f"{path}: a message is text without a role")
        if not isinstance(entry, dict):
            raise RowRefused(f"{path} is not an object")
        if len(entry) == 2 and self._add_plain(entry.get("role"), entry.get("content")):
            return
        if is_event(entry):
            entry = plain(entry)
        if not vercel.FIELDS.isdisjoint(entry) and vercel.fits(entry):
            for one in vercel.plain(entry):
                self.add(one, path)
            return
        if not _WRAPPED.isdisjoint(entry):
            entry = unwrapped(entry)
        if isinstance(inner := entry.get("content"), dict) and "parts" in inner:  # of Google's ADK
            entry = {name: value for name, value in entry.items() if name != "content"} | inner
        mark = read_mark(entry, path)
        word = self._word(entry)
        kind = entry.get("type")
        known = _KNOWN
        if word is None and isinstance(kind, str) and kind in _ITEMS:
            known = _OF_ITEMS
            add_item(self.steps, entry, path, self._fields, mark)
        else:
            role = self._role(kind if word is None else word, path)
            if role == "ignored":
                self._fields.became(path, IGNORED)
                return
            if role in ("system", "user"):
                self._add_text_message(role, entry, path, mark)
            else:
                _ADD[role](self, entry, path, mark)
            for key in [key for key in _ONCE if entry.get(key) not in EMPTY][1:]:
                self._fields.became(f"{path}.{key}", IGNORED)
        if not known.issuperset(entry):
            self._account_for_rest(entry, path, known)

    def _account_for_rest(self, entry: Entry, path: str, known: frozenset[str]) -> None:
        """Add the time and usage of a message to its step, and account for its other fields."""
        became: dict[str, str] = {}
        if self.steps.steps and not FACTS.isdisjoint(entry):
            became = add_facts(self.steps.steps[-1], entry)
        for name in became:
            if "." in name:  # of an object in the message
                self._fields.became(f"{path}.{name}", became[name])
        read = self._result_key(entry)
        for key in entry.keys() - known:
            if entry[key] not in EMPTY and key != read and not self._has_calls(entry, key):
                self._fields.became(f"{path}.{key}", became.get(key, IGNORED))

    def _has_calls(self, entry: Entry, key: str) -> bool:
        return isinstance(entry[key], list) and all(map(_is_call, entry[key])) and _CALLS.isdisjoint(entry)

    def _add_plain(self, word: Any, given: Any) -> bool:
        """Add a message that is a role and a text, as most are: half of the time that it takes for any other. Return
        False for one that has more to be read."""
        text = _only_text(given)
        if not isinstance(word, str) or text is None:
            return False
        role = self._roles.get(word)
        if role == "agent" and not may_think(text) and not may_call(text):
            self.steps.add_agent(text)
        elif role in ("system", "user") and text and not text.startswith("<tool_response>"):
            self.steps.add(role, text)
        else:
            return False
        return True

    def _word(self, entry: Entry) -> Any:
        author = entry.get("author")  # Harmony
        word = author.get("role") if isinstance(author, Mapping) else entry.get("role", entry.get("from"))
        return entry.get("sender") if word is None else word  # the last is of exports of Claude

    def _role(self, word: Any, path: str) -> str:
        if word is None:
            raise RowRefused(f"{path} has no role")
        role = (self._roles.get(word) or self._roles.get(word.lower())) if isinstance(word, str) else None
        if role is None and isinstance(word, str) and word.startswith("functions."):  # of Harmony
            return "tool"
        if role is None:
            raise RowRefused(f"{path} has the role {word!r}; known are {', '.join(self._roles)}"[:300])
        return role

    def _add_text_message(self, source: str, entry: Entry, path: str, mark: bool | None) -> None:
        key, given = self._given(entry)
        if source == "system" and given in (None, "", "None") and entry.get("system_prompt"):  # rows of SWE-agent
            given = entry["system_prompt"]
        _refuse_trained(mark, path)
        if isinstance(given, str):
            if not self._add_results(given):
                self.steps.add(source, given, extra=_name(entry))
        else:
            content = read_content(given, f"{path}.{key}", self._fields)
            if content.calls or content.thoughts:
                raise RowRefused(f"{path} has the role {source}, but calls a tool or has reasoning")
            for result in content.results:
                self.steps.add_result(result)
            if content.results and not content.parts:
                return
            self.steps.add(source, content.message(), extra=_name(entry))

    def _add_results(self, text: str) -> bool:
        """Add the results of calls that are written as text. Return False for any other text."""
        results = results_in_text(text) if "<tool_response>" in text and self.steps.is_waiting else []
        for result in results:
            self.steps.add_result(ToolResult(result))
        return bool(results)

    def _add_agent(self, entry: Entry, path: str, mark: bool | None) -> None:
        if entry.get("channel") is not None or entry.get("recipient") is not None:
            add_channel(self.steps, entry, path, self._fields, mark)
            return
        key, given = self._given(entry)
        is_text = isinstance(given, str)
        content = MessageContent() if is_text else read_content(given, f"{path}.{key}", self._fields)
        message = given if is_text else content.message()
        if not message and isinstance(entry.get("refusal"), str):
            message = entry["refusal"]
        thoughts = [*self._reasoning(entry, path), *content.thoughts]
        if isinstance(message, str):
            message, thought = split_thinking(message)
            thoughts.append(thought)
        reasoning = "\n\n".join(dict.fromkeys(filter(None, thoughts)))
        calls = self._calls(entry, content, path)
        if not calls and isinstance(message, str):
            message, calls = calls_after_text(message, path, self._fields)
        if entry.get("type") == "message" and isinstance(message, str) and not calls:  # an item of Responses
            add_message(self.steps, message, mark)
        else:
            self.steps.add_agent(message, reasoning=reasoning, calls=calls, mark=mark, extra=_name(entry))
        for result in content.results:
            self.steps.add_result(result)

    def _add_call(self, entry: Entry, path: str, mark: bool | None) -> None:
        if entry.get("tool_calls") or entry.get("function_call"):
            self._add_agent(entry, path, mark)
            return
        key, given = self._given(entry)
        # A database may have parsed the JSON.
        said = read_content(given, f"{path}.{key}", self._fields).message() if _is_text(given) else given
        text = said if isinstance(said, str) else orjson.dumps(said).decode()
        text, calls = calls_in_text(text, path, self._fields)
        if text:
            add_message(self.steps, text, mark)
        self.steps.add_part(CALL, calls=calls, mark=mark)

    def _add_tool(self, entry: Entry, path: str, mark: bool | None) -> None:
        _refuse_trained(mark, path)
        key, given = self._given(entry)
        if not key:
            key = self._result_key(entry)
            given = entry.get(key)
        if isinstance(given, str) and self._add_results(given):
            return
        parts = given if isinstance(given, list) else []
        if any(
            isinstance(part, Mapping) and part.get("type", "tool") not in ("text", "image", "image_url")
            for part in parts
        ):
            content = read_content(given, f"{path}.{key}", self._fields)
            if content.results and not content.parts:
                for result in content.results:
                    self.steps.add_result(result)
                return
        identifier = entry.get("tool_call_id") or entry.get("call_id") or entry.get("toolCallId") or ""
        if not identifier and self.steps.has_call(entry.get("id")):
            identifier = entry["id"]
        extra = _name(entry) or {}
        if entry.get("is_error") or entry.get("isError") or entry.get("status") == "error":
            extra["is_error"] = True
        found = read_result(given or "", f"{path}.{key}", self._fields)
        self.steps.add_result(ToolResult(found, str(identifier), extra))

    def _given(self, entry: Entry) -> tuple[str, Any]:
        """Return the name and the value of the content, which may be None."""
        for key in _CONTENTS:
            if (value := entry.get(key)) is not None:
                return key, value
        return "", None

    def _result_key(self, entry: Entry) -> str:
        """Return the field with what a tool returned, of a message without content."""
        word = self._word(entry)
        if not isinstance(word, str) or self._roles.get(word) != "tool" or self._given(entry)[0]:
            return ""
        return next((key for key in ("output", "result", "response") if entry.get(key) is not None), "")

    def _reasoning(self, entry: Entry, path: str) -> list[str]:
        """Return the reasoning of the first of the fields that has any. Providers repeat it in several: one that says
        something else is in the account."""
        found: list[str] = []
        for key in filter(entry.get, _REASONING):
            value = entry[key]
            parts = value if isinstance(value, list) else [{"text": value}]
            is_read = all(isinstance(part, Mapping) for part in parts) and isinstance(value, str | list)
            if found:
                texts = [str(part.get("text") or part.get("summary") or "") for part in parts] if is_read else []
                if "".join(texts) != "".join(found):
                    self._fields.became(f"{path}.{key}", IGNORED)
            elif is_read:
                found = [thought_of(part, f"{path}.{key}") for part in parts]
            else:
                raise RowRefused(f"{path}.{key} is neither text nor a list of parts")
        return found

    def _calls(self, entry: Entry, content: MessageContent, path: str) -> list[Json]:
        if _CALLS.isdisjoint(entry):
            return content.calls if _KNOWN.issuperset(entry) else content.calls + self._other_calls(entry, path)
        given = entry.get("tool_calls") or ()
        if isinstance(given, str):
            given = listed(given, f"{path}.tool_calls")
        given = [decoded(call) for call in given] if isinstance(given, list) else given
        if not isinstance(given, list | tuple) or not all(isinstance(call, Mapping) for call in given):
            raise RowRefused(f"{path}.tool_calls is not a list of objects")
        given = [*given, *(entry.get("invalid_tool_calls") or ())]  # LangChain's, with arguments that were cut off
        calls = [read_call(call, f"{path}.tool_calls.{index}", self._fields) for index, call in enumerate(given)]
        if isinstance(older := entry.get("function_call"), Mapping):
            call = read_call(older, f"{path}.function_call", self._fields)
            if not any(call | {"tool_call_id": one["tool_call_id"]} == one for one in calls):
                calls.append(call)
        known = {call["tool_call_id"] for call in calls} - {""}
        return calls + [call for call in content.calls if call["tool_call_id"] not in known]

    def _other_calls(self, entry: Entry, path: str) -> list[Json]:
        """Return the calls in a field that no format is known to have them in, such as `toolCalls`."""
        for key in entry.keys() - _OF_ITEMS:
            if isinstance(given := entry[key], list) and given and all(map(_is_call, given)):
                self._fields.became(f"{path}.{key}", "steps")
                return [read_call(call, f"{path}.{key}.{number}", self._fields) for number, call in enumerate(given)]
        return []


def _is_call(value: Any) -> bool:
    """Whether an object names a function beside its arguments."""
    function = value.get("function", value) if isinstance(value, Mapping) else None
    return isinstance(function, Mapping) and "name" in function and not ARGUMENTS.isdisjoint(function)


def _unmasked(entries: list[Any], path: str, roles: Mapping[str, str]) -> list[Any]:
    """Return the messages with `train` in place of `mask`. No message of a user or a tool is trained on, so theirs tell
    what it means. Raises `RowRefused` where they do not."""
    masked = [
        (entry, roles.get(str(entry.get("role", entry.get("from"))), "") in ("agent", "call"))
        for entry in entries
        if isinstance(entry, dict) and entry.get(_MASK) is not None
    ]
    of_others = {entry[_MASK] for entry, is_agent in masked if not is_agent}
    if of_others not in ({0}, {1}) or any(entry[_MASK] not in (0, 1) for entry, _ in masked):
        raise RowRefused(
            f'{path} has "mask", which sets use for trained messages and for those left out: name it "train" or "loss"'
        )
    trained = 0 in of_others
    marks = {id(entry): bool(entry[_MASK]) == trained for entry, is_agent in masked if is_agent}
    return [
        {
            **{key: value for key, value in entry.items() if key != _MASK},
            **({"train": marks[id(entry)]} if id(entry) in marks else {}),
        }
        if isinstance(entry, dict)
        else entry
        for entry in entries
    ]


def _only_text(given: Any) -> str | None:
    """Return the text of a content that is text or one part of it with no other field, and None for any other."""
    if isinstance(given, list) and len(given) == 1:
        (part,) = given
        is_plain = isinstance(part, dict) and part.get("type") == "text" and len(part) == 2
        given = part.get("text") if is_plain else None
    return given if isinstance(given, str) else None


def _is_text(given: Any) -> bool:
    """Whether a content is a list of texts."""
    parts = given if isinstance(given, list) else []
    return bool(parts) and all(isinstance(part, dict) and part.get("type") == "text" for part in parts)


def _refuse_trained(mark: bool | None, path: str) -> None:
    if mark:
        raise RowRefused(f"{path} is trained on, but it is not an assistant message")


def _name(entry: Entry) -> Json | None:
    author = entry.get("author")
    name = author.get("name") if isinstance(author, Mapping) else entry.get("name")
    return {"name": name} if isinstance(name, str) and name else None


_ADD = {
    "agent": _Reader._add_agent,
    "call": _Reader._add_call,
    "tool": _Reader._add_tool,
}
