"""The second reader: a model that looks for leaks in meaning, which have no words in common with the record.

It is believed only where it quotes: the words of the answer, and the record's words in a place of it. A finding whose
quotes are not there counts as none.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judging.leaks.case import LeakedToken
from judging.leaks.record import PullRequestRecord
from judging.sections import sections

READ = "leak_reader"
PLACES = ("title", "description", "files", "patch")
_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class LeakReading:
    """A reader's findings. `dropped` counts those whose quotes are not in the texts."""

    findings: tuple[LeakedToken, ...]
    dropped: int


def reader_messages(
    instructions: str, history: Sequence[str], record: PullRequestRecord, answer: str, *, secret: bytes
) -> list[dict[str, object]]:
    """Return the messages to the reader: its instructions, then history, record and answer side by side."""
    fields = {
        "title": record.title,
        "description": record.description,
        "files": "\n".join(record.files),
        "patch": record.patch,
    }
    places = "\n".join(f"<{name}>\n{_plain(text)}\n</{name}>" for name, text in fields.items())
    shown = "\n\n".join([record.issue, *history])
    parts = [("history", _plain(shown)), ("record", places), ("answer", _plain(answer))]
    return [{"role": "system", "content": instructions}, {"role": "user", "content": sections(parts, secret=secret)}]


def parse_reading(reply: str, answer: str, record: PullRequestRecord) -> LeakReading | None:
    """Read the reply's JSON object; None if there is none with a list of findings."""
    found = _findings(reply)
    if found is None:
        return None
    kept = [leak for finding in found if (leak := _checked(finding, answer, record)) is not None]
    return LeakReading(tuple(kept), len(found) - len(kept))


def _findings(reply: str) -> list[object] | None:
    decoder = json.JSONDecoder()
    last: list[object] | None = None
    at = reply.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(reply, at)
        except ValueError:
            at = reply.find("{", at + 1)
            continue
        except RecursionError:  # nested beyond the interpreter's depth
            return last
        if isinstance(value, dict) and isinstance(value.get("findings"), list):
            last = value["findings"]
        at = reply.find("{", end)
    return last


def _checked(finding: object, answer: str, record: PullRequestRecord) -> LeakedToken | None:
    if not isinstance(finding, Mapping):
        return None
    quote, words, place = (finding.get(key) for key in ("answer", "record", "place"))
    if not isinstance(quote, str) or not isinstance(words, str) or place not in PLACES:
        return None
    field = str(place)
    text = "\n".join(record.files) if field == "files" else str(getattr(record, field))
    span, source = _find(answer, quote), _find(text, words)
    if span is None or source is None:
        return None
    return LeakedToken(answer[span[0] : span[1]], READ, (span,), field, source[0], text[source[0] : source[1]])


def _find(text: str, quote: str) -> tuple[int, int] | None:
    """Find a quote; blanks may differ."""
    words = quote.split()
    if len("".join(words)) < _SHORTEST:
        return None
    match = re.search(r"\s+".join(map(re.escape, words)), text)
    return match.span() if match else None


def _plain(text: str) -> str:
    """Keep a text from closing the part that it is in."""
    return re.sub(r"<(/?(?:history|record|answer|title|description|files|patch)>)", r"‹\1", text)
