"""Mark the scan's findings in a text as a page shows it."""

import json
from collections.abc import Callable
from functools import partial
from itertools import count

from curation.web.text.markup import Mark, place_without_colours, without_colours
from judging.scan.scan import scan_each, texts_of


def scan_marks(recorded: object, shown: str, prefix: str) -> list[Mark]:
    """Return the marks of all findings in `recorded` that `shown` has, in characters of `shown`.

    `recorded` is a JSON value, such as a message with tool calls, and `shown` is its form on a page: its texts as they
    are, without colours, or as JSON. The finding number `n` of the value has the id `prefix-n`, so that a list of
    findings can link to its mark.
    """
    marks: list[Mark] = []
    numbers = count()
    searched: dict[str, int] = {}
    texts = list(texts_of(recorded))
    for text, findings in zip(texts, scan_each(texts), strict=True):
        if not findings:
            continue
        start, place = _find(shown, text[: findings[-1].end], searched.get(text, 0))
        searched[text] = start + 1
        for finding, number in zip(findings, numbers, strict=False):
            if start >= 0:
                low, high = start + place(finding.start), start + place(finding.end)
                if low == high:  # the page does not show it, such as a colour
                    continue
                marks.append(Mark(low, high, "scan", f"{prefix}-{number}", finding.rule))
    return sorted(marks)


def _find(shown: str, text: str, after: int) -> tuple[int, Callable[[int], int]]:
    """Return where the text begins in `shown`, -1 if it is not there, and where its characters are from there on."""
    forms: tuple[tuple[str, Callable[[int], int]], ...] = (
        (text, int),
        (without_colours(text), partial(place_without_colours, text)),
        (_in_json(text), lambda position: len(_in_json(text[:position]))),
    )
    for form, place in forms:
        start = shown.find(form, after)
        if start >= 0:
            return start, place
    return -1, int


def _in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
