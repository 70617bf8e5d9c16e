"""Rows as a trainer reads them: messages in the ChatML template, with the trained parts marked."""

from dataclasses import dataclass, replace

import orjson

from curation.exports.formats.parts import MessagePart, parts_of
from curation.exports.rows.filter import Line

# A longer message is shortened in the middle.
_SHOWN = 2_000


@dataclass(frozen=True, slots=True)
class RenderedRow:
    sample: str
    format: str
    split: str
    tokens: int
    parts: list[MessagePart]


def rendered(line: Line, sample_id: int) -> RenderedRow:
    parts = [_shortened(part) for part in parts_of(orjson.loads(line.data))]
    return RenderedRow(str(sample_id), line.format, line.split, line.tokens, parts)


def _shortened(part: MessagePart) -> MessagePart:
    if len(part.text) <= _SHOWN:
        return part
    cut = len(part.text) - _SHOWN
    return replace(part, text=f"{part.text[: _SHOWN // 2]}\n[… {cut:,} characters …]\n{part.text[-_SHOWN // 2 :]}")
