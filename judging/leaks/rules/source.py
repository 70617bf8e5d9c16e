"""Source lines that an answer quotes, mostly to edit them, before anything showed them."""

import keyword
import re
from collections.abc import Iterator

from judging.leaks.case import LeakCase, LeakFinding, Span
from judging.leaks.vocabulary import is_ordinary
from judging.leaks.words import is_common

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
