"""Text of the record that an answer quotes: source lines, mostly to edit them, before anything showed them; error texts
of the patch; sentences of the description."""

import keyword
import re
from collections.abc import Iterator

from judging.leaks.case import LeakCase, LeakFinding, Span
from judging.leaks.record import RecordPlace
from judging.leaks.tokens import LITERAL, TEXT
from judging.leaks.vocabulary import is_common, is_ordinary

SOURCE = "source"
_SHORTEST = 15
_SUBSTITUTED = re.compile(r"\bs(?P<d>[/|#,@!:~%+])(?P<old>(?:\\.|(?!(?P=d))[^\\\n]){8,400})(?P=d)")
_REMOVED = re.compile(r"(?m)^-(?!--)\s*(?P<old>\S[^\n]{7,400})$")
_QUOTED = re.compile(
    r"\"(?P<double>(?:[^\"\\\n]|\\.){8,400})\"|'(?P<single>(?:[^'\\\n]|\\.){8,400})'|`(?P<tick>[^`\n]{8,400})`"
)
_REPLACES = re.compile(r"(?:replace\(|\bsub\(|old_str\W{1,6}|old_string\W{1,6})\s*[rbfu]?['\"]{0,2}$")
_CODE = re.compile(r"[=(\[<>{.:;+*]")


def find(case: LeakCase) -> Iterator[LeakFinding]:
    """Yield whole lines of the old source, and quoted parts of one, that the history never showed."""
    old = [
        (squashed, place, line) for line, place in case.record.old_lines if len(squashed := _squash(line)) >= _SHORTEST
    ]
    if not old:
        return
    answer, offsets = _squash_with_offsets(case.answer)
    told: set[str] = set()
    for squashed, place, line in old:
        if squashed in told or squashed not in answer or not _is_specific(line):
            continue
        told.add(squashed)
        if not case.history.has_source(squashed):
            at = answer.index(squashed)
            yield LeakFinding(SOURCE, (offsets[at], offsets[at + len(squashed) - 1] + 1), place, line[:120])
    for text, span, replaced in _quotes(case.answer):
        squashed = _squash(text)
        specific = _is_specific(text)
        if len(squashed) < 12 or not (specific or replaced) or case.history.has_source(squashed):
            continue
        for whole, place, line in old:
            # Text that an edit replaces must be in the file, so there a plain line is enough, as a whole.
            if whole not in told and (squashed in whole if specific else squashed == whole):
                yield LeakFinding(SOURCE, span, place, line[:120])
                break


def _quotes(answer: str) -> Iterator[tuple[str, Span, bool]]:
    """Yield quoted texts with their spans, and whether an edit replaces or removes them."""
    for pattern in (_SUBSTITUTED, _REMOVED):
        for match in pattern.finditer(answer):
            yield match["old"], match.span("old"), True
    for match in _QUOTED.finditer(answer):
        group = match.lastgroup or "double"
        before = answer[max(0, match.start() - 24) : match.start()]
        yield match[group], match.span(group), _REPLACES.search(before) is not None


def _is_specific(line: str) -> bool:
    """Whether a line is more than what many programs have, such as `for item in items:` or `return result`."""
    if _CODE.search(line) is None:
        return False
    names = set(re.findall(r"[A-Za-z_$]\w+", line))
    telling = [n for n in names if len(n) >= 3 and not keyword.iskeyword(n) and not is_ordinary(n)]
    rare = [n for n in telling if not is_common(n, 1500)]
    return len(rare) >= 2 or (len(rare) == 1 and len(telling) >= 2 and len(line) >= 24)


def _squash(text: str) -> str:
    return "".join(text.replace("\\", "").split())


def _squash_with_offsets(text: str) -> tuple[str, list[int]]:
    kept = [(char, at) for at, char in enumerate(text) if char != "\\" and not char.isspace()]
    return "".join(char for char, _ in kept), [at for _, at in kept]


# A run of this many equal words is a copy; shorter runs are ordinary language.
_RUN = 6
_SHORTEST_STRING = 12
_STRING = re.compile(r"\"((?:[^\"\\\n]|\\.){12,300})\"|'((?:[^'\\\n]|\\.){12,300})'")
_PLACEHOLDER = re.compile(r"\$?\{[^{}\n]{0,80}\}|%\(?\w{0,20}\)?[sdrifxvwq+]\b|%[-+.\d]*[sdrifxvwqT]|\\[nt]")
_WORD = re.compile(r"[A-Za-z0-9_]+(?:'[A-Za-z]+)?")


def find_copies(case: LeakCase) -> Iterator[LeakFinding]:
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
