"""Numbers and short values of the record: `grep 10000019`, `mode = "relief-v7b"`, its pull request, issues, commits."""

import re
from collections.abc import Iterator

from judging.leaks.case import LeakCase, LeakFinding
from judging.leaks.numbers import is_telling, quantities, significant
from judging.leaks.record import REFERENCE, RELEASE, RecordPlace
from judging.leaks.rules.lines import positions
from judging.leaks.spelling import find_bounded, name_parts
from judging.leaks.vocabulary import STANDARDS, is_common, is_ordinary

VALUE = "value"
_STRING = re.compile(r"\"([^\"\\\s]{5,80})\"|'([^'\\\s]{5,80})'")
# The number of a standard is no secret.
_STANDARD = re.compile(rf"\b(?:{STANDARDS})[\s/-]{{0,2}}\Z")
_CODE = re.compile(r"`([^`\n]{6,80})`")
_PREFIX = re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{5,40}\b")
_VALUE = re.compile(r"[A-Za-z0-9]+(?:[-:/.+@][A-Za-z0-9]+)+")
# From this length on a number of a pull request needs no word before it.
_LONG_REFERENCE = 4


def find(case: LeakCase) -> Iterator[LeakFinding]:
    """Yield numbers and values that the record has, the history has not, and nobody would pick by chance."""
    yield from _numbers(case)
    yield from _quantities(case)
    yield from _strings(case)
    yield from _references(case)
    yield from _commits(case)
    yield from _people_and_releases(case)


def _numbers(case: LeakCase) -> Iterator[LeakFinding]:
    ranges = (position.span for position in positions(case) if position.counts or position.first != position.last)
    skipped = {at for span in ranges for at in range(*span)}
    for number in case.numbers:
        at = number.span[0]
        if not is_telling(number.value) or at in skipped or _STANDARD.search(case.answer, max(0, at - 12), at):
            continue
        key = significant(number.value)
        place = case.record.numbers.get(key)
        if place is not None and key not in case.history.numbers and (not number.said or len(number.value) > 2):
            text = case.record.texts[place.name][place.offset :].split("\n", 1)[0][:80]
            yield LeakFinding(VALUE, number.span, place, text)


def _quantities(case: LeakCase) -> Iterator[LeakFinding]:
    """Yield a time or size of the prose that is no round one: `180 ms`, or `0.18 s`."""
    for quantity in quantities(case.answer) if case.record.quantities else ():
        place = case.record.quantities.get(quantity.values)
        if place is not None and quantity.values not in case.history.quantities and not quantity.is_round:
            yield LeakFinding(VALUE, quantity.span, place)


def _strings(case: LeakCase) -> Iterator[LeakFinding]:
    seen: set[str] = set()
    for field, pattern in (("patch", _STRING), ("description", _CODE)):
        for match in pattern.finditer(case.record.texts[field]):
            value = match[match.lastindex or 1]
            if value in seen or value not in case.answer:
                continue
            seen.add(value)
            is_telling = _is_telling_words if pattern is _CODE else _is_telling_value
            at = find_bounded(case.answer, value, "_")
            if at >= 0 and is_telling(case, value):
                yield LeakFinding(VALUE, (at, at + len(value)), RecordPlace(field, match.start() + 1))


def _is_telling_words(case: LeakCase, code: str) -> bool:
    """Whether words in back-ticks have one that history and language do not: `make goldens`."""
    words = re.findall(r"[A-Za-z]{4,}", code)
    return len(code.split()) > 1 and any(
        not (is_ordinary(word) or is_common(word) or case.history.knows_word(word)) for word in words
    )


def _is_telling_value(case: LeakCase, value: str) -> bool:
    if _VALUE.fullmatch(value) is None or is_ordinary(value):
        return False
    if case.history.knows(value) or case.history.knows_path(value):
        return False
    if value.startswith(("application/", "text/", "image/", "http", "utf", "iso-", "./", "@")) or case.is_library_name(
        value
    ):
        return False
    if value in case.record.libraries:
        return False
    return len(case.unknown_parts(re.sub(r"[:/+@.]", "-", value))) >= 1 and len(name_parts(value)) >= 1


def _references(case: LeakCase) -> Iterator[LeakFinding]:
    """Yield the number of the pull request, or of an issue that the record names, in any spelling."""
    secret = {n: place for n, place in case.record.references.items() if find_bounded(case.history.text, n, "") < 0}
    if not secret:
        return
    for match in REFERENCE.finditer(case.answer):
        if (place := secret.get(match[1])) is not None:
            yield LeakFinding(VALUE, match.span(), place)
    for number, place in secret.items():
        alone = len(number) >= _LONG_REFERENCE and not 1970 <= int(number) <= 2038
        if alone and (at := find_bounded(case.answer, number, "_.")) >= 0:
            yield LeakFinding(VALUE, (at, at + len(number)), place)
    for said in case.numbers if any(len(number) >= 3 for number in secret) else ():
        if said.said and len(said.value) >= 3 and (place := secret.get(said.value)) is not None:
            yield LeakFinding(VALUE, said.span, place, said.value)


def _commits(case: LeakCase) -> Iterator[LeakFinding]:
    """Yield commits of the record, whole or as a prefix."""
    for match in _PREFIX.finditer(case.answer) if case.record.commits else ():
        for commit, place in case.record.commits:
            short, long = sorted((match[0], commit), key=len)
            if long.startswith(short) and match[0][:7] not in case.history.lower:
                yield LeakFinding(VALUE, match.span(), place, commit)
                break


def _people_and_releases(case: LeakCase) -> Iterator[LeakFinding]:
    """Yield people, versions and dates that the prose of the record names."""
    lower = case.answer.lower()
    for name, place in case.record.people.items():
        if (at := find_bounded(lower, name, "")) >= 0 and name not in case.history.lower:
            yield LeakFinding(VALUE, (at, at + len(name)), place)
    for match in RELEASE.finditer(case.answer):
        release = case.record.releases.get(match[1])
        if release is not None and match[1] not in case.history.text:
            yield LeakFinding(VALUE, match.span(1), release)
