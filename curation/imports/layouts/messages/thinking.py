"""Reasoning that a source has inside the text of an answer."""

import re

from judging.answers.read import ENDS_THINKING, OPENS_THINKING

_OPENING, _ENDING = re.compile(OPENS_THINKING), re.compile(ENDS_THINKING)
_BLOCK = re.compile(rf"\s*{OPENS_THINKING}(?P<text>.*?)(?:{ENDS_THINKING}\s*|\Z)", re.DOTALL)


def split_thinking(text: str) -> tuple[str, str]:
    """Return the answer and its reasoning: `<think>` blocks at the beginning, or all before a lone `</think>`.

    A block without an end is reasoning that was cut off.
    """
    thoughts = []
    while found := _BLOCK.match(text):
        thoughts.append(found["text"].strip())
        text = text[found.end() :]
    if not thoughts and (end := _ENDING.search(text)) and not _OPENING.search(text[: end.start()]):
        # Templates that open the block themselves leave its end alone in the answer.
        thoughts, text = [text[: end.start()].strip()], text[end.end() :].lstrip()
    return text, "\n\n".join(filter(None, thoughts))
