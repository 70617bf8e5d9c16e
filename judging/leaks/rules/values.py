"""Numbers and short values of the record: `grep 10000019`, `mode = "relief-v7b"`, its pull request, issues, commits."""

import re
from collections.abc import Iterator

from judging.leaks.case import Case, Found
from judging.leaks.numbers import is_telling, significant
from judging.leaks.record import COMMIT, REFERENCE, Place
from judging.leaks.rules.lines import positions
from judging.leaks.spelling import find_bounded, name_parts
from judging.leaks.vocabulary import is_ordinary

VALUE = "value"
_STRING = re.compile(r"\"([^\"\\\s]{5,80})\"|'([^'\\\s]{5,80})'")
_VALUE = re.compile(r"[A-Za-z0-9]+(?:[-:/.+@][A-Za-z0-9]+)+")
# From this length on a number of a pull request needs no word before it.
_LONG_REFERENCE = 4


def find(case: Case) -> Iterator[Found]:
    """Yield numbers and values that the record has, the history has not, and nobody would pick by chance."""
    yield from _numbers(case)
    yield from _strings(case)
    yield from _references(case)
    yield from _commits(case)


def _numbers(case: Case) -> Iterator[Found]:
    ranges = (position.span for position in positions(case) if position.counts or position.first != position.last)
    skipped = {at for span in ranges for at in range(*span)}
    for number in case.numbers:
        if not is_telling(number.value) or number.span[0] in skipped:
            continue
        key = significant(number.value)
        place = case.record.numbers.get(key)
        if place is not None and key not in case.history.numbers and (not number.said or len(number.value) > 2):
            text = case.record.texts[place.name][place.offset :].split("\n", 1)[0][:80]
            yield Found(VALUE, number.span, place, text)


def _strings(case: Case) -> Iterator[Found]:
    seen: set[str] = set()
    for match in _STRING.finditer(case.record.texts["patch"]):
        value = match[1] or match[2]
        if value in seen or value not in case.answer:
            continue
        seen.add(value)
        if _VALUE.fullmatch(value) is None or not _is_telling_value(case, value):
            continue
        place = Place("patch", match.start() + 1)
        at = find_bounded(case.answer, value, "_")
        if at >= 0:
            yield Found(VALUE, (at, at + len(value)), place)


def _is_telling_value(case: Case, value: str) -> bool:
    if is_ordinary(value) or case.history.knows(value) or case.history.knows_path(value):
        return False
    if value.startswith(("application/", "text/", "image/", "http", "utf", "iso-", "./", "@")) or case.is_library_name(
        value
    ):
        return False
    if value in case.record.libraries:
        return False
    return len(case.unknown_parts(re.sub(r"[:/+@.]", "-", value))) >= 1 and len(name_parts(value)) >= 1


def _references(case: Case) -> Iterator[Found]:
    """Yield the number of the pull request, or of an issue that the record names, in any spelling."""
    secret = {n: place for n, place in case.record.references.items() if find_bounded(case.history.text, n, "") < 0}
    if not secret:
        return
    for match in REFERENCE.finditer(case.answer):
        if (place := secret.get(match[1])) is not None:
            yield Found(VALUE, match.span(), place)
    for number, place in secret.items():
        alone = len(number) >= _LONG_REFERENCE and not 1900 <= int(number) <= 2100
        if alone and (at := find_bounded(case.answer, number, "_.")) >= 0:
            yield Found(VALUE, (at, at + len(number)), place)
    for said in case.numbers if any(len(number) >= 3 for number in secret) else ():
        if said.said and len(said.value) >= 3 and (place := secret.get(said.value)) is not None:
            yield Found(VALUE, said.span, place, said.value)


def _commits(case: Case) -> Iterator[Found]:
    """Yield commits of the record, whole or as a prefix."""
    for match in COMMIT.finditer(case.answer):
        for commit, place in case.record.commits:
            short, long = sorted((match[0], commit), key=len)
            if long.startswith(short) and match[0][:7] not in case.history.lower:
                yield Found(VALUE, match.span(), place, commit)
                break
