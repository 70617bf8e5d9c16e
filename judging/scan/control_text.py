"""Text that steers a model or a terminal: tokens of chat templates, invisible characters, control characters."""

import re
from collections.abc import Iterator

# Of ChatML, Harmony, Llama, Mistral, Gemma, DeepSeek, Kimi, Qwen, Seed and MiniMax.
_TOKEN = re.compile(
    r"<[|｜]/?[A-Za-z_▁][\w▁./:-]{1,60}(?:[ ][\w▁]{1,20}){0,2}[|｜]>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT)\]|<</?SYS>>"
    r"|</?(?:(?:start|end)_of_\w{1,20}|bos|eos|unused\d{1,3}|extra_id_\d{1,3}|fim_\w{1,10}|seed:\w{1,20}"
    r"|(?:\w{1,20}:)?(?:tool|function)_(?:calls?|responses?))>"
    r"|\]~!?b\[|\]~b\]|\[e~\[|◁/?think▷"
)
_ANCHORS = (
    *(
        "<|",
        "<｜",
        "INST]",
        "TOOL",
        "SYSTEM_PROMPT]",
        "SYS>>",
        "_of_",
        "<bos>",
        "<eos>",
        "<unused",
        "extra_id_",
        "fim_",
    ),
    *("tool_", "function_", "seed:", "~b]", "[e~[", "think▷"),
)
# Characters of terminals: escape, its 8-bit form, bell and backspace.
_SIGNS = ("\x1b", "\x9b", "\x07", "\x08")
_TERMINAL = re.compile("[\x1b\x9b](?:\\[[0-9;?]{0,20}[A-Za-z])?|[\x07\x08]")
# Characters that turn the direction of a text, and tags, which show nothing. A flag of a region is an emoji with tags.
_HIDDEN = re.compile(
    "\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f|(?P<hidden>[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]+)"
)
# What such text contains, unless it is not ASCII.
CONTROLS = (*_ANCHORS, *_SIGNS)


def find_control_text(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans, of a text as it is: `\\033` in a command is text like any other."""
    if any(anchor in text for anchor in _ANCHORS):
        yield from (match.span() for match in _TOKEN.finditer(text))
    if any(sign in text for sign in _SIGNS):
        yield from (match.span() for match in _TERMINAL.finditer(text))
    if not text.isascii():
        yield from (match.span() for match in _HIDDEN.finditer(text) if match["hidden"])
