"""Trajectories of the Agent Data Protocol: `content` is a list of actions and observations, `details` are columns."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from curation.imports.layouts.account import DocumentReading, Fields
from curation.imports.layouts.messages.calls import read_tools
from curation.imports.layouts.messages.read import read_messages
from curation.imports.layouts.rows.surroundings import read_surroundings
from curation.imports.layouts.session import AgentSession, Json
from curation.imports.sources.rows import RowRefused

NAME = "Agent Data Protocol trajectory"
_SHELL = ("bash", "sh", "shell")
# The fields of each class that the steps have. Of a web page the model reads the accessibility tree, if there is one.
_READ = {
    "text_observation": ("content", "source", "name"),
    "image_observation": ("content", "source"),
    "web_observation": ("axtree", "html", "image_observation"),
    "message_action": ("content", "description"),
    "code_action": ("content", "language", "description"),
    "api_action": ("function", "kwargs", "description"),
}


def fits(document: Mapping[str, Any]) -> bool:
    content = document.get("content")
    if not isinstance(content, list) or not content:
        return False
    return all(isinstance(one, dict) and "class_" in one for one in content)


def read(document: Mapping[str, Any]) -> DocumentReading:
    """Return the session of a row. Raises `RowRefused`."""
    fields = Fields(document)
    given = document.get("details") or {}
    if not isinstance(given, dict):
        raise RowRefused("details is no object")
    details = fields.inside("details", "metadata")
    messages: list[Json] = []
    open_calls = 0
    for index, one in enumerate(fields.take("content", "steps")):
        message = _message(one, f"content.{index}", fields, answers=open_calls > 0)
        open_calls += len(message.get("tool_calls", ())) - (message["role"] == "tool")
        messages.append(message)
    steps = read_messages(messages, "content", fields)
    # The values of details are all texts.
    tools = read_tools(details.take("tools", "tools"), "details.tools") if isinstance(details.get("tools"), str) else []
    around = read_surroundings(details)
    session = AgentSession(
        layout=NAME,
        steps=steps.steps,
        agent=around.agent | ({"tool_definitions": tools} if tools else {}),
        origin=replace(around.origin, id=str(fields.take("id", "id") or "")),
        verdict=around.verdict,
        usage=around.usage,
        metadata=around.metadata | fields.rest(),
    )
    return DocumentReading([session], fields.account())


def _message(one: Json, path: str, fields: Fields, *, answers: bool) -> Json:
    """Return an action or an observation as a message. What the environment shows answers an open call."""
    kind, source = str(one["class_"]), one.get("source", "environment")
    if kind not in _READ or source not in ("user", "agent", "environment"):
        raise RowRefused(f"{path} has the class {kind!r} and the source {source!r}, which are not known together"[:300])
    fields.ignore_rest(one, (*_READ[kind], "class_"), path)
    said = one.get("description") or ""
    if kind == "message_action":
        return {"role": "assistant", "content": one.get("content") or "", "reasoning_content": said}
    if kind.endswith("_action"):
        return {"role": "assistant", "content": said, "tool_calls": [{"function": _call(kind, one)}]}
    role = "assistant" if source == "agent" else "tool" if source == "environment" and answers else "user"
    shown: Json = {"role": role, "content": _shown(kind, one, path, fields)}
    return shown | ({"name": one["name"]} if one.get("name") else {})


def _call(kind: str, one: Json) -> Json:
    if kind == "api_action":
        return {"name": one.get("function"), "arguments": one.get("kwargs")}
    language = str(one.get("language"))
    argument = "command" if language in _SHELL else "code"
    return {"name": f"execute_{language}", "arguments": {argument: one.get("content")}}


def _shown(kind: str, one: Json, path: str, fields: Fields) -> Any:
    if kind == "text_observation":
        return one.get("content")
    if kind == "image_observation":
        return [_image(one)]
    if one.get("axtree") and one.get("html"):
        fields.became(f"{path}.html", "ignored: the accessibility tree beside it is read")
    text, image = one.get("axtree") or one.get("html") or "", one.get("image_observation")
    if image and not isinstance(image, dict):
        raise RowRefused(f"{path}.image_observation is no object")
    return [{"type": "text", "text": text}, _image(image)] if image else text


def _image(one: Json) -> Json:
    return {"type": "image_url", "image_url": {"url": one.get("content")}}
