"""The content of a message: text, or parts as OpenAI, Anthropic, Gemini and OpenTelemetry write them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from curation.imports.layouts.account import IGNORED, Fields
from curation.imports.layouts.messages.calls import make_call, read_call
from curation.imports.layouts.session import Json
from curation.imports.sources.rows import RowRefused

TEXTS = frozenset(("text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal"))
CALLS = frozenset(
    ("tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "function_call", "tool-call", "toolCall")
)
# Of Goose, whose calls and results may be errors in their place.
_REQUESTS = frozenset(("toolRequest", "frontendToolRequest"))
RESULTS = frozenset(("tool_result", "mcp_tool_result", "tool_call_response", "function_call_output", "tool-result"))
THOUGHTS = frozenset(("thinking", "reasoning", "think"))
IMAGES = frozenset(("image", "image_url", "input_image"))
# Parts that are known and have no text: the provider alone can read them.
SEALED = frozenset(("redacted_thinking", "redactedThinking"))
# Messages of a program to the person, in the messages of its session.
_UNSEEN = frozenset(("systemNotification", "actionRequired", "toolConfirmationRequest", "conversationCompacted"))
_PARTS = frozenset(("type", "text", "image", "json", "inlineData", "inline_data", "fileData", "file_data"))
_CONTENTS = ("content", "response", "result", "output", "error")
_CALL_IDS = ("tool_use_id", "call_id", "tool_call_id", "toolUseId", "toolUseID", "toolCallId", "id")
_ADDRESSES = ("image_url", "source", "image", "url")
_MEDIA_TYPES = {"jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}
_GEMINI = {
    "inlineData": "inline_data",
    "fileData": "file_data",
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "executableCode": "executable_code",
    "codeExecutionResult": "code_execution_result",
}
# The fields that are read of parts. Others are in the account.
_OF_PARTS = frozenset(
    (
        *("type", "text", "refusal", "thinking", "reasoning", "summary", "thought", "run", "is_error", "isError"),
        *("image_url", "source", "image", "data", "mimeType", "mediaType", *_CONTENTS, *_CALL_IDS),
        *("toolUse", "toolResult", "reasoningContent", "json", *_GEMINI, *_GEMINI.values()),
        *("resource", "uri", "document", "think"),
    )
)
# Parts that are calls, or are kept or ignored as a whole.
_WHOLE = CALLS | _REQUESTS | SEALED | _UNSEEN | {"audio"}
_IGNORED_KINDS = ("source-", "data-")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool returned. An empty `call_id` answers the next call without a result."""

    content: str | list[Json]
    call_id: str = ""
    extra: Json = field(default_factory=dict)


@dataclass(slots=True)
class MessageContent:
    """The parts of one message by their kind, each in the order of the source."""

    parts: list[Json] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[Json] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)

    def message(self) -> str | list[Json]:
        """The text, with parts on lines of their own, or parts of ATIF if one of them is an image."""
        if any(part["type"] != "text" for part in self.parts):
            return self.parts
        return "\n".join(part["text"] for part in self.parts)


def read_content(given: Any, path: str, fields: Fields) -> MessageContent:
    """Return the content of a message. Raises `RowRefused` for a part that is not known, by its path and type."""
    content = MessageContent()
    if isinstance(given, Mapping) and ("type" in given or "text" in given):
        given = [given]
    if isinstance(given, str):
        content.parts.append(_text(given))
    elif isinstance(given, list):
        for index, part in enumerate(given):
            _add(content, part, f"{path}.{index}", fields)
    elif given is not None:
        raise RowRefused(f"{path} is neither text nor a list of parts")
    return content


def read_result(given: Any, path: str, fields: Fields) -> str | list[Json]:
    """Return the content of a tool's result. An object that is no part is JSON, and becomes its text."""
    if isinstance(given, str):
        return given
    if (isinstance(given, Mapping) and "type" not in given) or isinstance(given, bool | int | float):
        return orjson.dumps(given).decode()
    if isinstance(given, list) and not all(map(_may_be_part, given)):
        return orjson.dumps(given).decode()
    content = read_content(given, path, fields)
    if content.calls or content.results or content.thoughts:
        raise RowRefused(f"{path} is the result of a tool, with a part that only messages have")
    return content.message()


def _may_be_part(value: Any) -> bool:
    """Whether an entry of a list may be a part of a message, and is not just a value that a tool returned."""
    return isinstance(value, str) or (isinstance(value, Mapping) and not _PARTS.isdisjoint(value))


def _add(content: MessageContent, part: Any, path: str, fields: Fields) -> None:
    if isinstance(part, str):
        content.parts.append(_text(part))
        return
    if not isinstance(part, Mapping):
        raise RowRefused(f"{path} is not a part of a message")
    kind = part.get("type")
    if kind is not None and not isinstance(kind, str):
        raise RowRefused(f"{path} is a part whose type is no text")
    if kind is None or not (kind in _WHOLE or kind.startswith(_IGNORED_KINDS)):
        fields.ignore_rest(part, _OF_PARTS | {"url"} if kind in IMAGES else _OF_PARTS, path)
    if kind is None:
        _add_untyped(content, part, path, fields)
    elif kind in TEXTS:
        content.parts.append(_text(_string(part, ("text", "content", "refusal"), path)))
    elif kind in IMAGES:
        if isinstance(inner := part.get("image_url"), Mapping):
            fields.ignore_rest(inner, ("url",), f"{path}.image_url")
        content.parts.append(read_image(part, path))
    elif kind in THOUGHTS:
        content.thoughts.append(thought_of(part, path))
    elif kind in CALLS:
        content.calls.append(read_call(part, path, fields))
    elif kind in RESULTS:
        content.results.append(_result(part, path, fields))
    elif kind.endswith("_tool_result"):  # of tools that Anthropic runs
        given = part.get("content")
        text = given if isinstance(given, str) else orjson.dumps(given).decode()
        content.results.append(ToolResult(text, str(part.get("tool_use_id") or "")))
    elif kind in _REQUESTS:
        call = _settled(part.get("toolCall"))
        if isinstance(call, Mapping):
            content.calls.append(read_call({**call, "id": part.get("id")}, path, fields))
        else:
            fields.became(f"{path}.toolCall", "ignored: a call that the program could not read")
    elif kind == "toolResponse":
        given = part.get("toolResult")
        result = _settled(given)
        inner = result if isinstance(result, Mapping) and "content" in result else {"content": result}
        failed = inner.get("isError") or (isinstance(given, Mapping) and given.get("status") == "error")
        content.results.append(_result({**inner, "id": part.get("id"), "is_error": failed}, path, fields))
    elif kind == "resource" and isinstance(resource := part.get("resource"), Mapping) and "text" in resource:
        content.parts.append(_text(_string(resource, ("text",), path)))
    elif kind == "resource_link" and isinstance(part.get("uri"), str):
        content.parts.append(_text(part["uri"]))
    elif kind == "audio" and isinstance(part.get("source"), Mapping):  # of ATIF
        content.parts.append(dict(part))
    elif kind == "document" and isinstance(document := part.get("document", part.get("source")), Mapping):
        content.parts.append(_text(_document(document, path)))
    elif kind in SEALED | _UNSEEN or kind.startswith(_IGNORED_KINDS):
        fields.became(f"{path}.{kind}", IGNORED)
    else:
        raise RowRefused(f"{path} is a part of type {kind!r}, which is not known"[:300])


def _add_untyped(content: MessageContent, part: Mapping[str, Any], path: str, fields: Fields) -> None:
    """Add a part of Gemini, whose only field names its kind, or one with a text alone."""
    given = {_GEMINI.get(name, name): value for name, value in part.items() if value is not None}
    if "text" in given or ("content" in given and isinstance(given["content"], str)):
        text = _string(given, ("text", "content"), path)
        if given.get("thought") is True:
            content.thoughts.append(text)
        else:
            content.parts.append(_text(text))
    elif isinstance(given.get("image"), str):  # of Qwen-Agent
        content.parts.append(read_image(given, path))
    elif _add_bedrock(content, given, path, fields):
        return
    elif isinstance(call := given.get("function_call"), Mapping):
        content.calls.append(read_call(call, path, fields))
    elif isinstance(answer := given.get("function_response"), Mapping):
        result = _unwrapped(answer.get("response"))
        fields.ignore_rest(answer, ("id", "name", "response"), path)
        extra = {"name": answer["name"]} if isinstance(answer.get("name"), str) else {}
        content.results.append(ToolResult(read_result(result, path, fields), str(answer.get("id") or ""), extra))
    elif isinstance(data := given.get("inline_data") or given.get("file_data"), Mapping):
        content.parts.append(_gemini_image(data, path))
    elif isinstance(code := given.get("executable_code"), Mapping):
        content.calls.append(make_call("code_execution", dict(code), None, path, fields))
    elif isinstance(ran := given.get("code_execution_result"), Mapping):
        content.results.append(ToolResult(str(ran.get("output") or "")))
    else:
        raise RowRefused(
            f"{path} is a part with the fields {', '.join(map(str, part)) or 'none'}, not a known one"[:300]
        )


def _add_bedrock(content: MessageContent, given: Mapping[str, Any], path: str, fields: Fields) -> bool:
    """Add a part of Bedrock's Converse. Return False for any other."""
    kind, inner = next(((name, value) for name, value in given.items() if isinstance(value, Mapping)), ("", {}))
    if kind == "toolUse":
        content.calls.append(read_call(inner, path, fields))
    elif kind == "toolResult":
        content.results.append(_result({**inner, "is_error": inner.get("status") == "error"}, path, fields))
    elif kind == "reasoningContent" and isinstance(text := inner.get("reasoningText"), Mapping):
        content.thoughts.append(thought_of(text, path))
    elif kind == "json":
        content.parts.append(_text(orjson.dumps(inner).decode()))
    elif kind == "image" and isinstance(source := inner.get("source"), Mapping):
        data = {"data": source.get("bytes"), "media_type": f"image/{inner.get('format') or 'png'}"}
        content.parts.append(read_image({"source": data if source.get("bytes") else source}, path))
    else:
        return False
    return True


def _document(document: Mapping[str, Any], path: str) -> str:
    """Return the text of a document of Cohere or Anthropic. Raises `RowRefused` for other documents."""
    data = document.get("data")
    if document.get("type", "text") != "text" or not isinstance(data, str | Mapping):
        raise RowRefused(f"{path} is a part of type 'document' that is no text")
    return data if isinstance(data, str) else orjson.dumps(data).decode()


def thought_of(part: Mapping[str, Any], path: str) -> str:
    """Return the text of a part of reasoning: of Anthropic, Responses, OpenTelemetry, or Inspect."""
    for key in ("thinking", "reasoning", "think", "text", "content", "summary"):
        value = part.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            return "\n".join(_string(inner, ("text",), path) for inner in value)
    return ""


def read_image(part: Mapping[str, Any], path: str) -> Json:
    """Return an image as a part of ATIF, with its address or its data as a `data:` address."""
    found = next((part[key] for key in _ADDRESSES if part.get(key)), None)
    if found is None and isinstance(part.get("data"), str):  # of MCP
        found = {"data": part["data"], "media_type": part.get("mimeType", part.get("mediaType"))}
    if isinstance(found, Mapping):
        if found.get("type") == "base64" or "data" in found:
            return _image(f"data:{found.get('media_type')};base64,{found.get('data')}")
        found = found.get("url", found.get("path"))
    if not isinstance(found, str) or not found:
        raise RowRefused(f"{path} is an image without an address or data")
    return _image(found)


def _gemini_image(data: Mapping[str, Any], path: str) -> Json:
    media_type = str(data.get("mimeType", data.get("mime_type")))
    if not media_type.startswith("image/"):
        raise RowRefused(f"{path} is a file of type {media_type}, and only images are known")
    address = data.get("fileUri", data.get("file_uri")) or f"data:{media_type};base64,{data.get('data')}"
    return _image(str(address), media_type)


def _image(address: str, media_type: str = "") -> Json:
    if not media_type and address.startswith("data:image/"):
        media_type = address[len("data:") :].split(";", 1)[0].split(",", 1)[0]
    if not media_type:
        ending = address.partition("?")[0].rpartition(".")[2].lower()
        media_type = _MEDIA_TYPES.get(ending, "image/png")
    return {"type": "image", "source": {"media_type": media_type, "path": address}}


def _result(part: Mapping[str, Any], path: str, fields: Fields) -> ToolResult:
    ran = part.get("run")
    if isinstance(ran, Mapping):  # of Amp
        fields.ignore_rest(ran, (*_CONTENTS, "status"), f"{path}.run")
        part = {**part, **ran}
    key = next((key for key in _CONTENTS if part.get(key) is not None), "")
    given = part.get(key, "")
    failed = part.get("is_error") or part.get("isError")
    if isinstance(given, Mapping) and given.keys() == {"type", "value"}:  # of Vercel's AI SDK
        given, failed = given["value"], failed or str(given["type"]).startswith("error")
    identifier = next((part[key] for key in _CALL_IDS if part.get(key)), "")
    extra = {"is_error": True} if failed else {}
    return ToolResult(read_result(given, f"{path}.{key}", fields), str(identifier), extra)


def _settled(given: Any) -> Any:
    """Return the value of a call or result of Goose, or the error in its place."""
    return given.get("value", given.get("error")) if isinstance(given, Mapping) else None


def _unwrapped(response: Any) -> Any:
    """Return the text in Gemini's `{"output": "…"}` or `{"result": "…"}`, the usual forms of a text."""
    if isinstance(response, Mapping) and len(response) == 1:
        ((name, value),) = response.items()
        if name in ("output", "result") and isinstance(value, str):
            return value
    return response if response is not None else ""


def _string(part: Any, keys: tuple[str, ...], path: str) -> str:
    value = next((part[key] for key in keys if part.get(key) is not None), None) if isinstance(part, Mapping) else part
    if not isinstance(value, str):
        raise RowRefused(f"{path} is a part of text without a text")
    return value


def _text(text: str) -> Json:
    return {"type": "text", "text": text}
