"""Reasoning that a source has inside the text of an answer."""

import re

_BLOCK = re.compile(r"\s*<(think|thinking)>(?P<text>.*?)(?:</\1>\s*|\Z)", re.DOTALL)
_LONE_END = re.compile(r"</think(?:ing)?>\s*")


def split_thinking(text: str) -> tuple[str, str]:
    """Return the answer and its reasoning: `<think>` blocks at the beginning, or all before a lone `</think>`.

    A block without an end is reasoning that was cut off.
    """
    if "think" not in text:
        return text, ""
    thoughts = []
    while found := _BLOCK.match(text):
        thoughts.append(found["text"].strip())
        text = text[found.end() :]
    if not thoughts and (end := _LONE_END.search(text)) and "<think" not in text[: end.start()]:
        # Templates that open the block themselves leave its end alone in the answer.
        thoughts, text = [text[: end.start()].strip()], text[end.end() :]
    return text, "\n\n".join(filter(None, thoughts))
