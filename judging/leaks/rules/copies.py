"""Passages of prose that an answer copies from a record: error texts of the patch, sentences of the description."""

import re
from collections.abc import Iterator

from judging.leaks.case import LeakCase, LeakFinding
from judging.leaks.record import RecordPlace
from judging.leaks.tokens import LITERAL, TEXT

# A run of this many equal words is a copy; shorter runs are ordinary language.
_RUN = 6
_SHORTEST_STRING = 12
_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.){12,300})\"|'((?:[^'\\\n]|\\.){12,300})'")
_PLACEHOLDER = re.compile(r"\$?\{[^{}\n]{0,80}\}|%\(?\w{0,20}\)?[sdrifxvwq+]\b|%[-+.\d]*[sdrifxvwqT]|\\[nt]")
_WORD = re.compile(r"[A-Za-z0-9_]+(?:'[A-Za-z]+)?")


def find(case: LeakCase) -> Iterator[LeakFinding]:
    """Yield copied strings of the patch, and copied runs of words of the description and title."""
    yield from _copied_strings(case)
    yield from _copied_sentences(case)


def _copied_strings(case: LeakCase) -> Iterator[LeakFinding]:
    """Yield strings of the patch, cut at their placeholders, that the answer repeats and the history never showed."""
    plain = case.answer.lower()
    seen: set[str] = set()
    for match in _STRING.finditer(case.record.texts["patch"]):
        index = match.lastindex or 1
        for piece in _PLACEHOLDER.split(match[index]):
            text = piece.strip(" .,:;!?-\\")
            lower = text.lower()
            if len(text) < _SHORTEST_STRING or lower in seen or lower not in plain:
                continue
            seen.add(lower)
            if len(re.findall(r"[A-Za-z]{2,}", text)) >= 3 and lower not in case.history.lower:
                start = plain.index(lower)
                yield LeakFinding(LITERAL, (start, start + len(text)), RecordPlace("patch", match.start()))


def _copied_sentences(case: LeakCase) -> Iterator[LeakFinding]:
    """Yield runs of six or more words shared with the prose of the record and absent from the history."""
    words = list(_WORD.finditer(case.answer))
    lowered = [word[0].lower() for word in words]
    shown: str | None = None
    for text, origin in case.record.prose:
        source = list(_WORD.finditer(text))
        runs = {
            tuple(w[0].lower() for w in source[i : i + _RUN]): source[i].start() for i in range(len(source) - _RUN + 1)
        }
        position = 0
        while runs and position + _RUN <= len(words):
            run = tuple(lowered[position : position + _RUN])
            if run not in runs:
                position += 1
                continue
            shown = " ".join(_WORD.findall(case.history.lower)) if shown is None else shown
            end = position + _RUN
            while end < len(words) and tuple(lowered[end - _RUN + 1 : end + 1]) in runs:
                end += 1
            if " ".join(run) not in shown:
                span = words[position].start(), words[end - 1].end()
                yield LeakFinding(TEXT, span, RecordPlace(origin.name, origin.offset + runs[run]))
            position = end
