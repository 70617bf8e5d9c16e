"""How an answer is dressed: a cause of a preference, never a reason."""

import re
from typing import NamedTuple

_BLOCK = re.compile(r"^```.*?^```[^\n]*$", re.DOTALL | re.MULTILINE)
_MARKDOWN = re.compile(r"^#{1,6} |^\s*(?:[-*+]|\d+\.) |\*\*[^*\n]+\*\*|^\|.*\|$|^> |`[^`\n]+`", re.MULTILINE)
_COURTESY = re.compile(
    r"\b(?:please|thanks?|thank you|sorry|apolog\w+|happy to|glad to|great (?:question|idea|work)|kindly|appreciate\w*|"
    r"you'?re welcome|feel free|hope (?:this|that) helps)\b",
    re.IGNORECASE,
)


class Style(NamedTuple):
    """The number of Markdown marks outside of code blocks, and of courtesies."""

    markdown: int
    courtesy: int


def style_of(text: str) -> Style:
    prose = _BLOCK.sub("", text)
    return Style(len(_MARKDOWN.findall(prose)), len(_COURTESY.findall(prose)))
