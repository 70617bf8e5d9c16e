"""Numbers and short values of the record: `grep 10000019`, `mode = "relief-v7b"`, the number of the pull request."""

import re
from collections.abc import Iterator

from judging.leaks.case import Case, Found
from judging.leaks.record import Place
from judging.leaks.rules.lines import positions
from judging.leaks.spelling import NUMBER, find_bounded, name_parts, number_of
from judging.leaks.vocabulary import is_ordinary
from judging.shell.words import word_set

VALUE = "value"
_STRING = re.compile(r"\"([^\"\\\s]{5,80})\"|'([^'\\\s]{5,80})'")
_VALUE = re.compile(r"[A-Za-z0-9]+(?:[-:/.+@][A-Za-z0-9]+)+")
_ID_NUMBER = re.compile(r"(?:#|\bpull/|\bissues/|\bPR\s?#?|\bpull request\s?#?)(\d{2,7})\b", re.IGNORECASE)
_HASH = re.compile(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b")
# Numbers that need no record: sizes, ports, statuses, times, years.
_COMMON = frozenset(
    int(number)
    for number in word_set(
        "36 48 72 99 120 123 127 150 180 192 240 250 255 300 360 365 366 401 403 404 405 409 410 418 422 429 443 500 "
        "501 502 503 504 600 640 644 720 750 755 768 777 900 999 1023 1080 1234 1280 1440 1920 3306 3600 5432 6379 "
        "8000 8080 8443 8888 9999 12345 27017 32767 65535 86400 123456 604800"
    )
)
_COMMON_FLOATS = frozenset({"0.25", "0.75", "1.25", "0.05", "0.15", "0.95", "0.99", "3.14", "2.71"})


def find(case: Case) -> Iterator[Found]:
    """Yield numbers and values that the record has, the history has not, and nobody would pick by chance."""
    yield from _numbers(case)
    yield from _strings(case)
    yield from _identities(case)


def is_telling(number: str) -> bool:
    """Whether a number, in the spelling of `number_of`, is unlikely to be picked by chance."""
    if number.startswith("0x"):
        return len(set(number[2:])) > 1 and len(number) >= 5
    if "." in number:
        digits = number.replace(".", "").lstrip("0")
        return len(digits) >= 2 and number not in _COMMON_FLOATS and not re.fullmatch(r"\d\.\d?5", number)
    value = int(number)
    if value < 13 or value in _COMMON or 1900 <= value <= 2100 or value & (value - 1) == 0:
        return False
    if value < 100:
        return value % 5 != 0
    return len(number.rstrip("0")) >= 3 or (value < 1000 and value % 50 != 0)


def _numbers(case: Case) -> Iterator[Found]:
    skipped = [position.span for position in positions(case)]
    for match in NUMBER.finditer(case.answer):
        number = number_of(match[0])
        if not is_telling(number) or any(at <= match.start() < end for at, end in skipped):
            continue
        place = case.record.numbers.get(number)
        if place is not None and number not in case.history.numbers:
            yield Found(
                VALUE, match.span(), place, case.record.texts[place.name][place.offset :].split("\n", 1)[0][:80]
            )


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


def _identities(case: Case) -> Iterator[Found]:
    """The number or commit in the instance id is no part of the history."""
    for pattern in (_ID_NUMBER, _HASH):
        for match in pattern.finditer(case.answer):
            index = match.lastindex or 0
            at = find_bounded(case.record.instance_id.replace("_", " "), match[index], "")
            if at >= 0 and find_bounded(case.history.text, match[index], "") < 0:
                yield Found(VALUE, match.span(), Place("instance_id", at))
