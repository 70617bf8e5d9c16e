"""Reasoning that a source has inside the text of an answer."""

import re

from judging.answers.read import ENDS_THINKING, ENDS_TOLD, OPENS_THINKING, OPENS_TOLD

_OPENING, _ENDING = re.compile(OPENS_THINKING), re.compile(ENDS_THINKING)
_BLOCKS = tuple(
    re.compile(rf"\s*{opening}(?P<text>.*?)(?:{ending}\s*|\Z)", re.DOTALL)
    for opening, ending in ((OPENS_THINKING, ENDS_THINKING), (OPENS_TOLD, ENDS_TOLD))
)


def may_think(text: str) -> bool:
    """Whether the text may have thinking in it: a quick look, right where it says no."""
    return "think" in text or "THINK" in text or text.lstrip()[:1] == "<"


def split_thinking(text: str) -> tuple[str, str]:
    """Return the answer and its reasoning: `<think>` blocks at the beginning, or all before a lone `</think>`.

    A block without an end is reasoning that was cut off.
    """
    thoughts: list[str] = []
    if not may_think(text):
        return text, ""
    while found := next(filter(None, (block.match(text) for block in _BLOCKS)), None):
        thoughts.append(found["text"].strip())
        text = text[found.end() :]
    if not thoughts and (end := _ENDING.search(text)) and not _OPENING.search(text[: end.start()]):
        # Templates that open the block themselves leave its end alone in the answer.
        thoughts, text = [text[: end.start()].strip()], text[end.end() :].lstrip()
    return text, "\n\n".join(filter(None, thoughts))
