"""Try conversations against a chat template: does it raise, does what is trained on stand in the rendered text, and is
each called tool declared?"""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

_CHILD = Path(__file__).with_name("child.py")
# Seconds for one conversation, and for the start of the process.
LONGEST, LONGEST_START = 5.0, 30.0
Messages = Sequence[Mapping[str, Any]]


class TemplateFault(StrEnum):
    RAISES = "template_error"
    MISSING = "not_rendered"
    UNDECLARED = "undeclared_tool"


class Failure(NamedTuple):
    """Why a conversation is no row for a model with this template. `detail` is for people."""

    fault: TemplateFault
    detail: str


class TemplateRefused(Exception):
    """The text is no template."""


class ChatTemplate:
    """A template in its process. A context manager, which ends the process."""

    def __init__(self, text: str) -> None:
        """Raises `TemplateRefused` with the reason."""
        self._text = text
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def try_out(self, messages: Messages, tools: Sequence[Mapping[str, Any]], learned: Sequence[int]) -> Failure | None:
        """Return why the conversation fails, or None. `learned` are the indexes of its trained messages. Arguments of
        calls are objects, as templates expect them."""
        if undeclared := _undeclared(messages, tools):
            return Failure(TemplateFault.UNDECLARED, f"called: {', '.join(undeclared)}")
        texts = [list(_texts(messages[index])) for index in learned]
        answer = self._ask({"messages": messages, "tools": list(tools) or None, "learned": texts}, LONGEST)
        if answer is None:
            self.close()
            self._start()
            return Failure(TemplateFault.RAISES, f"the template took over {LONGEST:g} s, or too much memory")
        if error := answer.get("error"):
            return Failure(TemplateFault.RAISES, error)
        place = answer["missing"]
        return (
            None
            if place is None
            else Failure(TemplateFault.MISSING, f"message {learned[place] + 1} is not in the text")
        )

    def _start(self) -> None:
        command = [sys.executable, "-P", str(_CHILD)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
        answer = self._ask(self._text, LONGEST_START)
        if answer is None or answer["error"]:
            self.close()
            raise TemplateRefused(answer["error"] if answer else "it takes too long to read, or too much memory")

    def _ask(self, asked: object, seconds: float) -> dict[str, Any] | None:
        """Return the answer, or None if there was none in this time."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: S101 - both are pipes
        line = b""
        until = time.monotonic() + seconds
        try:
            stdin.write(json.dumps(asked).encode() + b"\n")
            stdin.flush()
            while not line.endswith(b"\n"):
                ready, _, _ = select.select([stdout], [], [], max(until - time.monotonic(), 0))
                part = os.read(stdout.fileno(), 65_536) if ready else b""
                if not part:
                    return None
                line += part
        except BrokenPipeError:  # it ended by its limit of memory
            return None
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def _undeclared(messages: Messages, tools: Sequence[Mapping[str, Any]]) -> list[str]:
    declared = {tool.get("function", tool).get("name") for tool in tools}
    called = (call["function"]["name"] for message in messages for call in message.get("tool_calls", ()))
    return list(dict.fromkeys(name for name in called if name not in declared))


def _texts(message: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield what a rendered message must have, each text in the forms in which templates write it. They cut space at
    both ends, and write arguments as they are or as JSON."""
    if content := message["content"].strip():
        yield [content]
    for call in message.get("tool_calls", ()):
        yield [call["function"]["name"]]
        for text in _leaves(call["function"]["arguments"]):
            if text.strip():
                forms = [text.strip(), *(json.dumps(text, ensure_ascii=ascii)[1:-1].strip() for ascii in (False, True))]
                yield list(dict.fromkeys(forms))


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _leaves(inner)
