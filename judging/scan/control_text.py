"""Text that steers a model or a terminal: tokens of chat templates, invisible characters, control characters."""

import re
from collections.abc import Iterator

# Of ChatML, Harmony, Llama, Mistral, Gemma, DeepSeek, Kimi, Qwen, Seed, MiniMax, GLM, EXAONE, Nemotron and Baichuan.
_TOKEN = re.compile(
    r"<[|｜]/?[A-Za-z_▁][\w▁./:-]{1,60}(?:[ ][\w▁]{1,20}){0,2}[|｜]>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|CALL_ID|THINK|[gs]MASK)\]"
    r"|<</?SYS>>|\[\|(?:system|user|assistant|tool|endofturn)\|\]|</?(?:(?:start|end)_of_(?:turn|image|audio|video|utterance|role|text|thought)|[es]op"
    r"|SPECIAL_\d{1,3}|reserved_\d{1,3}|bos|eos|unused\d{1,3}|extra_id_\d{1,3}|fim_\w{1,10}|seed:\w{1,20}"
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
    *("CALL_ID]", "THINK]", "MASK]", "[|a", "[|e", "[|s", "[|t", "[|u", "sop>", "eop>", "<SPECIAL_", "<reserved_"),
    *("tool_", "function_", "seed:", "~b]", "[e~[", "think▷"),
)
# Characters of terminals: escape, its 8-bit form, bell and backspace.
_SIGNS = ("\x1b", "\x9b", "\x07", "\x08")
_TERMINAL = re.compile("[\x1b\x9b](?:\\[[0-9;?]{0,20}[A-Za-z])?|[\x07\x08]")
# Characters that turn the direction of a text, and those that show nothing: tags, two selectors of variants together,
# and many blanks without width. A flag of a region is an emoji with tags.
_HIDDEN = re.compile(
    "\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f|(?P<hidden>[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]+"
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}|[\u200b-\u200d\u2060-\u2064\ufeff]{8,})"
)
# Runs of all of these, which are found faster.
_UNSEEN = re.compile(
    "[\u200b-\u200d\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff\U0001f3f4\U000e0000-\U000e007f\U000e0100-\U000e01ef]+"
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
        for run in _UNSEEN.finditer(text):
            yield from (match.span() for match in _HIDDEN.finditer(text, *run.span()) if match["hidden"])
