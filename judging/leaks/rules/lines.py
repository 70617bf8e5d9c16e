"""Line numbers of a file that was never opened: `sed -n '895p'`, `edit 120:122`, "the bug is on line 895"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from judging.leaks.case import Case, Found, Span
from judging.leaks.record import Hunk
from judging.leaks.spelling import is_same_path, normal_path

LINE = "line"
# Each has the groups `a` and, for a range, `b` or its length `n`.
_POSITIONS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\bsed\b[^\n|;]{0,80}?['\"\s](?P<a>\d{1,7})(?:,\s*(?:\+(?P<n>\d{1,5})|(?P<b>\d{1,7}|\$)))?\s*"
        r"(?:[pdq=](?=['\"\s;}]|$)|[acix](?=[\\\s'\"])|s(?=[^\w\s])|[{!])",
        r"\bhead\s+(?:-n\s*|--lines=|-)(?P<b>\d{1,7})\b[^\n|]{0,200}\|\s*tail\s+(?:-n\s*|-)(?P<n>\d{1,5})\b",
        r"\btail\s+(?:-n\s*|--lines=)\+(?P<a>\d{1,7})\b(?:[^\n|]{0,200}\|\s*head\s+(?:-n\s*|-)?(?P<n>\d{1,5})\b)?",
        r"\bF?NR\s*(?:==|>=?)\s*(?P<a>\d{1,7})\b(?:[^\n]{0,20}?NR\s*<=?\s*(?P<b>\d{1,7}))?",
        r"\$\.\s*(?:==|>=?)\s*(?P<a>\d{1,7})\b(?:[^\n]{0,20}?\$\.\s*<=?\s*(?P<b>\d{1,7}))?",
        r"(?m)^\s*edit\s+(?P<a>\d{1,7}):(?P<b>\d{1,7})\b",
        r"(?m)^\s*goto\s+(?P<a>\d{1,7})\b",
        r"(?m)^\s*open\s+\S+\s+(?P<a>\d{1,7})\b",
        r"\s-L\s*['\"]?(?P<a>\d{1,7}),(?:\+(?P<n>\d{1,5})|(?P<b>\d{1,7}))",
        r"\b(?:vim?|nano|emacs|less|code)\b[^\n]{0,40}?\s\+(?P<a>\d{1,7})\b",
        r"\[(?P<a>\d{1,7}):(?P<b>\d{1,7})\]",
        r"\bislice\([^\n,]{1,60},\s*(?P<a>\d{1,7}),\s*(?P<b>\d{1,7})\)",
        r"\bgetlines?\([^\n,]{1,120},\s*(?P<a>\d{1,7})\)",
        r"view_?range[\"'\s:=\[]{1,8}(?P<a>\d{1,7})[,\s]+(?P<b>\d{1,7})",
        r"[\w)]\.\w{1,6}(?::|#L)(?P<a>\d{1,7})(?:-L?(?P<b>\d{1,7}))?\b",
        r"\b[Ll]ines?\s+(?:number\s+)?(?:L|#)?(?P<a>\d{1,7})(?:\s*(?:-|–|to|and|through|bis)\s*(?P<b>\d{1,7}))?\b",
        r"\b(?:bat|batcat)\b[^\n]{0,60}?\s(?:-r|--line-range)[\s=]?(?P<a>\d{1,7}):(?P<b>\d{1,7})",
        r"(?:^|\s)(?:-[ABCmn]|--lines|--max-count|--context)[\s=]?(?P<a>\d{1,7})\b",
        r"\b(?:head|tail|timeout|sleep|seq|nice|split)\s+(?:-\w+\s+)?-?(?P<a>\d{1,7})(?:\s+(?P<b>\d{1,7}))?\b",
    )
)
_COUNTS = 2  # The last patterns are counts, which say nothing about one line.
_PATH = re.compile(r"[\w@+-][\w.@+/-]*\.\w{1,6}\b")
_WIDEST, _MARGIN, _NEAR = 90, 3, 40


@dataclass(frozen=True, slots=True)
class Position:
    """Lines that an answer names, 1-based and inclusive."""

    span: Span
    first: int
    last: int
    counts: bool

    @property
    def is_specific(self) -> bool:
        """Whether the lines were picked, unlike the top of a file or a page of round numbers."""
        width = self.last - self.first
        if self.counts or self.first <= 12 or width > _WIDEST:
            return False
        round_edges = self.first % 10 in (0, 1) and self.last % 10 in (0, 1)
        return not (round_edges and width >= 20)


def positions(case: Case) -> Iterator[Position]:
    """Yield the lines that an answer names or asks for, and the counts that look like them."""
    if not any(char.isdigit() for char in case.answer):
        return
    for number, pattern in enumerate(_POSITIONS):
        for match in pattern.finditer(case.answer):
            given = match.groupdict()
            first, last, size = (int(given[key]) if (given.get(key) or "").isdigit() else None for key in "abn")
            if first is None:
                first = (last or 1) - (size or 1) + 1
            elif last is None:
                last = first + (size or 0)
            yield Position(match.span(), first, last or first, number >= len(_POSITIONS) - _COUNTS)


def find(case: Case) -> Iterator[Found]:
    """Yield lines inside a hunk of the patch, of a file that nothing in the history opened or numbered."""
    seen: set[Span] = set()
    for position in positions(case):
        if position.span in seen or not position.is_specific:
            continue
        seen.add(position.span)
        hunk = _hunk(case, position)
        if hunk is not None and not _is_near(case, position) and not _was_shown(case, hunk):
            start, end = hunk.spans[0]
            yield Found(LINE, position.span, hunk.place, f"{hunk.path}, lines {start} to {end}")


def _was_shown(case: Case, hunk: Hunk) -> bool:
    """Whether the history opened the file, or has half of the patch's old source."""
    lines = [line for line, _ in case.record.old_lines if len(line) >= 20]
    shown = sum(line in case.history.text for line in lines)
    return case.history.was_opened(hunk.path) or shown >= max(2, len(lines) / 2)


def _hunk(case: Case, position: Position) -> Hunk | None:
    """Return the hunk that the lines meet, in the file that is named beside them or in any."""
    line_start = case.answer.rfind("\n", 0, position.span[0]) + 1
    line_end = case.answer.find("\n", position.span[1])
    line = case.answer[line_start : line_end if line_end >= 0 else len(case.answer)]
    named = [normal_path(path) for path in _PATH.findall(line)]
    for hunk in case.record.hunks:
        if named and not any(is_same_path(path, hunk.path) for path in named) and case.in_code(position.span):
            continue
        for start, end in hunk.spans:
            if position.first <= end + _MARGIN and position.last >= start - _MARGIN:
                return hunk
    return None


def _is_near(case: Case, position: Position) -> bool:
    return any(position.first - _NEAR <= n <= position.last + _NEAR for n in case.history.line_numbers)
