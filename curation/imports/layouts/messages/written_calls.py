"""Tool calls that are written as text, and results between `<tool_response>` tags.

A message has calls if its text is nothing but calls from a notation's mark on. Any other text stays as it is, and the
account says so unless the mark is in code.
"""

import re

import orjson

from curation.imports.layouts.account import Fields
from curation.imports.layouts.messages.calls import loosely_decoded, read_call
from curation.imports.layouts.messages.notations import CLOSES, NOTATIONS, OPENS, elements, function_elements, whole
from curation.imports.layouts.session import Json
from curation.imports.sources.rows import RowRefused

WRITTEN = "(calls written as text)"
_STAYS = "text: the calls are not whole, or other text is between or after them"
_UNTYPED = "(arguments of calls written as text)", "text: the notation has no types"
_RESPONSE = re.compile(r"<(tool_response)>"), "</tool_response>"
# How an answer ends in logs of the text that a model made.
_ENDS = ("</s>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|observation|>", "<｜end▁of▁sentence｜>")


def may_call(text: str) -> bool:
    """Whether the text may have calls in it: a quick look, right where it says no."""
    return ("<" in text or "[TOOL_CALLS]" in text) and any(mark in text for mark in NOTATIONS)


def calls_in_text(text: str, path: str, fields: Fields) -> tuple[str, list[Json]]:
    """Return the text and the calls of sharegpt's `function_call` and ms-swift's `tool_call`: JSON of a call or a list
    of them, alone or between `<tool_call>` and `</tool_call>` after text, or elements `<function=NAME>` after text, as
    OpenHands and Qwen write them; also the list in Python that smolagents writes, and the notations of models. Raises
    `RowRefused`."""
    before, _, rest = text.partition(OPENS)
    is_between = rest.rstrip().endswith(CLOSES)
    before = before.removesuffix("\n") if is_between else ""
    inner = rest.rstrip().removesuffix(CLOSES) if is_between else text.removeprefix("Calling tools:")
    written = loosely_decoded(inner.strip())
    refusal = ", but its text is no JSON of a call: map its role if it is text"
    calls = written if isinstance(written, list) else [written]
    if isinstance(written, str) and "<function=" in written:
        start = written.index("<function=")
        if found := whole(function_elements(written[start:])):
            fields.became(*_UNTYPED)
            return before or written[:start].rstrip(), _read(found, path, fields)
        refusal = " with text that is in no parameter of a call, or with a parameter twice"
    elif calls and all(isinstance(call, dict) for call in calls):
        return before, _read(calls, path, fields)
    before, calls = calls_after_text(text, path, fields)
    if not calls:
        raise RowRefused(f"{path} is a turn of tool calls{refusal}")
    return before, calls


def calls_after_text(text: str, path: str, fields: Fields) -> tuple[str, list[Json]]:
    """Return the text before calls that an assistant wrote as text, and the calls. Any other text is returned as it
    is."""
    if not may_call(text):
        return text, []
    places = sorted((place, mark) for mark in NOTATIONS if (place := _place(text, mark)) >= 0)
    if not places:
        return text, []
    place, mark = places[0]
    calls = whole(NOTATIONS[mark](_without_end(text[place:]), mark))
    fields.became(WRITTEN, "steps" if calls else _STAYS)
    if not calls:
        return text, []
    if mark == OPENS and not text[place + len(mark) :].lstrip().startswith("{"):
        fields.became(*_UNTYPED)
    return text[:place].rstrip(), _read(calls, path, fields)


def results_in_text(text: str) -> list[str]:
    """Return the results between `<tool_response>` and `</tool_response>`, if the text has nothing else."""
    found, others = elements(text, *_RESPONSE)
    return [] if others.strip() else [_result_of(one.strip()) for _, one in found]


def _result_of(text: str) -> str:
    """Return the content of a result that names its function, or the text itself."""
    value = loosely_decoded(text)
    if not isinstance(value, dict) or value.keys() != {"name", "content"}:
        return text
    return value["content"] if isinstance(value["content"], str) else orjson.dumps(value["content"]).decode()


def _read(calls: list[Json], path: str, fields: Fields) -> list[Json]:
    return [read_call(call, path, fields) for call in calls]


def _place(text: str, mark: str) -> int:
    """Return the first place of a mark that is in no block and no line of code, or -1."""
    at, in_block, in_line = 0, False, False
    while (found := text.find(mark, at)) >= 0:
        between = text[at:found]
        in_block ^= between.count("```") % 2 == 1
        _, is_new, line = between.rpartition("\n")
        in_line = (in_line and not is_new) ^ (line.count("`") % 2 == 1)
        if not (in_block or in_line):
            return found
        at = found + len(mark)
    return -1


def _without_end(text: str) -> str:
    text = text.rstrip()
    for end in _ENDS:
        text = text.removesuffix(end).rstrip()
    return text
