"""Wrong texts in place of a right one, which pass a checker that does not compare the whole content."""

import re
import string
from collections.abc import Collection, Iterator
from decimal import Decimal

WORD = re.compile(r"[^\W_]+")
_VALUE = re.compile(r"[^\s=:,;\"']+")
_NUMBER = re.compile(r"(?<![\w.])\d{1,15}(?![\w.])")
_DECIMAL = re.compile(r"(?<![\w.])\d{1,15}\.(\d{1,9})(?![\w.])")
# By its first bytes the kind of a file is recognized.
HEADER = 16
FOREIGN = "zq foreign line"
MAX_STUFFED = 40 * 1024
MAX_LITERAL = 300
MAX_VALUE = 80
# Of each value of a result, so many others of the checker are tried.
MAX_OTHER = 8
_LITERAL = re.compile(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"|([^\s'\";|&()<>]+)", re.DOTALL)
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n(.*?)^\s*\1$", re.DOTALL | re.MULTILINE)
_NEXT = str.maketrans(
    string.ascii_lowercase + string.ascii_uppercase + string.digits,
    "bcdefghijklmnopqrstuvwxyza" + "BCDEFGHIJKLMNOPQRSTUVWXYZA" + "2234567891",
)

# Line breaks stay, and none is made.
_OTHER_BYTES = bytes(byte if byte == 10 else 13 if byte == 11 else byte ^ 1 for byte in range(256))


def foreign_texts(text: str, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Return what to call it, and `text` with other content. `known` are words of the checker.

    The variants keep, in turn, the layout and the checker's words; the layout; the words; all values, and so their
    counts and sums; the count and the lengths of lines, in order; the sum of the numbers; the letters of each word.
    """
    yield "other values, the checker's own words kept", scrambled(text, keep=known)
    yield "other words and numbers of the same lengths", scrambled(text)
    yield "other numbers, all words kept", WORD.sub(lambda m: _next(m[0]) if m[0].isdigit() else m[0], text)
    lines = text.splitlines()
    yield "values exchanged between its lines", _exchanged(text)
    yield "foreign lines, as many and as long, sorted", _ended(text, [_filler(n, len(x)) for n, x in enumerate(lines)])
    yield "other numbers with the same sum", _same_sum(text)
    yield "each number one less", _NUMBER.sub(lambda match: str(max(0, int(match[0]) - 1)), text)
    if _DECIMAL.search(text):
        yield "the last digit but one of each decimal number one more", _DECIMAL.sub(_more, text)
    yield "the letters of each word in the opposite order", WORD.sub(lambda match: match[0][::-1], text)


def other_answers(text: str, script: str) -> Iterator[tuple[str, str]]:
    """Return what to call it, and `text` with another value of the checker's script in the place of one of its own, or
    of all of a single line. A script that names several values may take any of them.

    Values that stand near each other in the script come first.
    """
    values = _values_of(script)
    for match in _VALUE.finditer(text):
        for value in _nearest(values, match[0]) if match[0] in values else ():
            if value.isdigit() == match[0].isdigit() and not is_rounded(value, match[0]):
                yield f"{value} in place of {match[0]}", f"{text[: match.start()]}{value}{text[match.end() :]}"
    line = text.strip()
    if line in values and not _VALUE.fullmatch(line):
        for value in _nearest(values, line):
            yield f"{value} in place of {line}", text.replace(line, value)


def longer_line(text: str, number: int) -> Iterator[tuple[str, str]]:
    """Return what to call it, and `text` with a longer word at an end of this line: `4` is the beginning of `44`."""
    lines = text.splitlines(keepends=True)
    words = list(WORD.finditer(lines[number]))
    for says, at, last in (("end", words[-1].end(), -1), ("beginning", words[0].start(), 0)) if words else ():
        letter = lines[number][at + last].replace("0", "1")  # zeros may mean nothing there
        longer = f"{lines[number][:at]}{letter}{lines[number][at:]}"
        yield f"a longer word at the {says} of", "".join([*lines[:number], longer, *lines[number + 1 :]])


def is_rounded(one: str, other: str) -> bool:
    """Whether two decimal numbers differ by one in their last digit or only in zeros at their ends."""
    found = [match for match in map(_DECIMAL.fullmatch, (one, other)) if match]
    least = min((Decimal(1).scaleb(-len(match[1])) for match in found), default=Decimal(0))
    return len(found) == 2 and abs(Decimal(one) - Decimal(other)) <= least


def foreign_bytes(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Return what to call it, and as many other bytes with as many lines."""
    yield "other bytes, as many", data.translate(_OTHER_BYTES)
    yield "its first bytes and then others, as many", data[:HEADER] + data[HEADER:].translate(_OTHER_BYTES)


def foreign_runs(size: int, lines: int) -> tuple[tuple[str, int], ...]:
    """Return lines, and how often each is repeated, that are together `lines` lines and `size` bytes. The last one is
    cut there."""
    if size < 2 * lines or lines == 0:
        return ((f"{FOREIGN}\n", size // len(FOREIGN) + 1),)
    length, longer = divmod(size, lines)
    runs = (("z" * length + "\n", longer), ("z" * (length - 1) + "\n", lines - longer))
    return tuple(run for run in runs if run[1])


def in_other_lines(text: str) -> str:
    """Return `text` with foreign words before and after each line, so that no line is a right one."""
    return "".join(f"{FOREIGN} {line} {FOREIGN}\n" for line in text.splitlines())


def scrambled(text: str, keep: Collection[str] = ()) -> str:
    """Return `text` with each word replaced by another of its length; other characters stay."""
    return WORD.sub(lambda match: match[0] if match[0] in keep else _next(match[0]), text)


def without_line(text: str, number: int) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(lines[:number] + lines[number + 1 :])


def with_other_line(text: str, number: int) -> str:
    lines = text.splitlines(keepends=True)
    lines[number] = scrambled(lines[number])
    return "".join(lines)


def literals_of(script: str) -> list[str]:
    """Return the texts that a script has: quoted ones, bare words, here documents, and each of its lines."""
    found = [part for match in _LITERAL.finditer(script) for part in match.groups() if part]
    found += [match[2] for match in _HEREDOC.finditer(script)]
    plain = [re.sub(r"\\(.)", r"\1", part) for part in found if "\\" in part]
    bare = [re.sub(r"^\^|\$$", "", part) for part in found if part.startswith("^") or part.endswith("$")]
    lines = [line.strip() for part in (*found, *plain, *bare) for line in re.split(r"\n|\\n", part)]
    return list(dict.fromkeys(line for line in lines if line and len(line) <= MAX_LITERAL))


def words_of(script: str) -> frozenset[str]:
    return frozenset(WORD.findall(script))


def stuffed(texts: Collection[str]) -> str:
    """Return one text with every line of `texts`, a foreign line between each two."""
    lines: dict[str, None] = {}
    size = 0
    for text in texts:
        for line in text.splitlines():
            size += len(line.encode()) + len(FOREIGN) + 6
            if line.strip() and line not in lines and "\0" not in line and size < MAX_STUFFED:
                lines[line] = None
    return "".join(f"{line}\n{FOREIGN} {number}\n" for number, line in enumerate(lines, 1)) or f"{FOREIGN}\n"


def _values_of(script: str) -> list[str]:
    """Return the literals of a script, those of a pattern branch by branch."""
    branches = (branch for literal in literals_of(script) for branch in literal.split("|"))
    values = (re.sub(r"\\(.)", r"\1", branch.strip("^$()\\ ")) for branch in branches)
    values = (value for value in values if WORD.search(value) and len(value) <= MAX_VALUE and value[0] != "-")
    return list(dict.fromkeys(values))


def _nearest(values: list[str], to: str) -> list[str]:
    """Return the values around this one, the nearest first."""
    at = values.index(to)
    order = sorted(range(len(values)), key=lambda place: abs(place - at))
    return [values[place] for place in order[1 : MAX_OTHER + 1]]


def _exchanged(text: str) -> str:
    """Return `text` with the last word of each line moved to the line before; lines that would only change their order
    stay."""
    lines = text.splitlines()
    last = {number: found[-1] for number, line in enumerate(lines) if len(found := list(WORD.finditer(line))) > 1}
    words = [match[0] for match in last.values()]
    moved = dict(zip(last, [*words[1:], *words[:1]], strict=True))
    for number, match in last.items():
        lines[number] = f"{lines[number][: match.start()]}{moved[number]}{lines[number][match.end() :]}"
    return text if sorted(lines) == sorted(text.splitlines()) else _ended(text, lines)


def _same_sum(text: str) -> str:
    """Return `text` with the smallest of its lines' last numbers one less, and the greatest one more."""
    lines = text.splitlines()
    last = {number: found[-1] for number, line in enumerate(lines) if (found := list(_NUMBER.finditer(line)))}
    least = min((number for number in last if int(last[number][0])), key=lambda number: int(last[number][0]), default=0)
    most = max(last.keys() - {least}, key=lambda number: (int(last[number][0]), number), default=None)
    if most is None or least not in last:
        return text
    for number, by in ((least, -1), (most, 1)):
        match = last[number]
        value = str(int(match[0]) + by).zfill(len(match[0]) if match[0].startswith("0") else 0)
        lines[number] = f"{lines[number][: match.start()]}{value}{lines[number][match.end() :]}"
    return _ended(text, lines)


def _more(match: re.Match[str]) -> str:
    return str(Decimal(match[0]) + Decimal(10).scaleb(-len(match[1])))


def _next(word: str) -> str:
    return word.translate(_NEXT)


def _filler(number: int, length: int) -> str:
    """A text of this length that sorts behind that of a smaller number."""
    name = f"{number:06d}"
    return (name[-length:] + "z" * length)[:length]


def _ended(text: str, lines: list[str]) -> str:
    return "\n".join(lines) + ("\n" if text.endswith("\n") else "")
