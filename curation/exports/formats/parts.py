"""Read a row of any format as messages, each with what a trainer does with it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from judging.messages import message_text

Use = Literal["context", "learned", "rejected"]
_ROLES = {"human": "user", "gpt": "assistant", "function_call": "assistant", "observation": "tool"}


@dataclass(frozen=True, slots=True)
class Part:
    """One message. `use` says whether a trainer learns it, avoids it, or only reads it."""

    role: str
    text: str
    use: Use

    @property
    def chatml(self) -> str:
        """The message in ChatML, the template of Qwen and many others."""
        return f"<|im_start|>{self.role}\n{self.text}<|im_end|>\n"


def parts_of(row: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the messages of a row that an export wrote."""
    if system := row.get("system"):
        yield _part({"role": "system", "content": system}, "context")
    if "messages" in row:
        last = len(row["messages"]) - 1
        for number, message in enumerate(row["messages"]):
            yield _part(message, "learned" if _is_learned(message, number == last) else "context")
        return
    history = row.get("prompt", row.get("conversations", row.get("input", {}).get("messages", [])))
    chosen = _side(row, "completion", "chosen", "preferred_output")
    if not chosen:
        *history, last_message = history
        chosen = [last_message]
    for message in history:
        yield _part(message, "context")
    for message in chosen:
        yield _part(message, "learned" if row.get("label", True) else "rejected")
    for message in _side(row, "rejected", "non_preferred_output"):
        yield _part(message, "rejected")


def _is_learned(message: Mapping[str, Any], is_last: bool) -> bool:
    """Whether its mark says so; a row without marks teaches its last message."""
    mark = message.get("train", message.get("weight"))
    return is_last if mark is None else bool(mark)


def _side(row: Mapping[str, Any], *names: str) -> list[Mapping[str, Any]]:
    found: Any = next((row[name] for name in names if name in row), [])
    return found if isinstance(found, list) else [found]


def _part(message: Mapping[str, Any], use: Use) -> Part:
    role = str(message.get("role", message.get("from", "")))
    text = message_text({**message, "content": message.get("content", message.get("value"))})
    return Part(_ROLES.get(role, role), text, use)
