"""Rows of a text source: a splitter cuts it into raw records of bounded length, which are decoded one by one."""

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import orjson

from curation.imports.sources.rows import BadRow, Fault, SourcePosition, SourceRow, too_long
from curation.web.text.storable import MOST_VALUES, has_many_values, storable

BOM, UTF_16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
# `count` remembers the position of every so many rows, so that `window` can start near its first row.
REMEMBERED_EVERY = 256
# A message has one of these.
_SPEAKER = {"role", "from"}
_NOT_FINITE: Fault = ("(numbers that are not finite)", "null")
_LONGEST_KEY = 100


class RawRow(NamedTuple):
    """The bytes of one record, or why it is refused; an empty text is a blank line."""

    offset: int
    text: bytes
    after: SourcePosition
    refusal: str = ""
    is_cut: bool = False


Split = Callable[[BinaryIO, SourcePosition, int], Iterator[RawRow]]


class TextReader:
    """JSON records in a seekable file. `damage` says why the file ends early, if it does."""

    def __init__(self, *, file: BinaryIO, split: Split, format: str, longest: int, damage: str = "") -> None:
        self.format = format
        self._file = file
        self._split = split
        self._longest = longest
        self._damage = damage
        self._positions: list[SourcePosition] = []
        self._count: int | None = None

    def rows(self, start: SourcePosition) -> Iterator[SourceRow | BadRow]:
        size = self._file.seek(0, os.SEEK_END)
        if start.byte > size:
            return  # the damage is already reported
        last = start
        for raw in self._split(self._file, start, self._longest):
            last = raw.after
            if raw.text or raw.refusal:
                yield decode(raw)
        if self._damage:
            yield BadRow(last.offset, self._damage, SourcePosition(last.offset + 1, size + 1), is_cut=True)

    def count(self) -> int:
        if self._count is None:
            self._positions = [SourcePosition()]
            last = SourcePosition()
            for raw in self._split(self._file, SourcePosition(), self._longest):
                last = raw.after
                if last.offset % REMEMBERED_EVERY == 0:
                    self._positions.append(last)
            self._count = last.offset
        return self._count

    def window(self, start: int, length: int) -> Iterator[SourceRow | BadRow]:
        self.count()
        position = self._positions[min(start // REMEMBERED_EVERY, len(self._positions) - 1)]
        for raw in self._split(self._file, position, self._longest):
            if raw.offset >= start + length:
                return
            if raw.offset >= start and (raw.text or raw.refusal):
                yield decode(raw)


def split_lines(file: BinaryIO, start: SourcePosition, longest: int) -> Iterator[RawRow]:
    """One record per line. Blank lines count, so `offset` + 1 is the line number; CRLF and a BOM are removed."""
    file.seek(start.byte)
    offset, byte = start.offset, start.byte
    while line := file.readline(longest + 2):
        byte += len(line)
        refusal = ""
        if len(line.rstrip(b"\r\n")) > longest:
            byte += _skip_line(file, line)
            line, refusal = b"", too_long(longest, "line")
        after = SourcePosition(offset + 1, byte)
        text = (line.removeprefix(BOM) if offset == 0 else line).strip()
        yield RawRow(offset, text, after, refusal)
        offset += 1


def _skip_line(file: BinaryIO, line: bytes) -> int:
    """Read on to the end of a line that is too long; return the number of bytes."""
    skipped = 0
    while line and not line.endswith(b"\n"):
        line = file.readline(1024 * 1024)
        skipped += len(line)
    return skipped


def decode(raw: RawRow) -> SourceRow | BadRow:
    if raw.refusal:
        return BadRow(raw.offset, raw.refusal, raw.after, is_cut=raw.is_cut)
    if has_many_values(raw.text):
        return BadRow(raw.offset, f"more than {MOST_VALUES:,} values (the limit for one row)", raw.after)
    try:
        value = strict = orjson.loads(raw.text)
    except orjson.JSONDecodeError as error:
        try:
            value, strict = read_loosely(raw.text), None
        except (ValueError, RecursionError):
            return BadRow(raw.offset, _why_not_json(raw.text, error), raw.after)
    faults = json_faults(raw.text, strict)
    if isinstance(value, list) and value and all(isinstance(one, dict) and one.keys() & _SPEAKER for one in value):
        value = {"messages": value}  # a conversation without other columns
    if not isinstance(value, dict):
        return BadRow(raw.offset, f"not an object but {_kind_of(value)}", raw.after)
    return SourceRow(raw.offset, value, raw.after, faults=faults)


def read_loosely(text: bytes) -> Any:
    """Return the value in JSON by Python's own parser, which takes half surrogates, and numbers that are not finite:
    these are null. Raises `ValueError` or `RecursionError`."""
    return json.loads(text.decode(), parse_constant=lambda name: None, parse_float=_finite)


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _why_not_json(text: bytes, error: orjson.JSONDecodeError) -> str:
    try:
        text.decode()
    except UnicodeDecodeError as wrong:
        if text.startswith(UTF_16):
            return "not UTF-8 but UTF-16: save the file as UTF-8"
        return f"not UTF-8: byte 0x{text[wrong.start]:02x} at position {wrong.start}"
    if b"\x00" in text:
        return f"contains a NUL byte at position {text.index(0)}"
    return f"not JSON: {error}"


def _kind_of(value: object) -> str:
    return {list: "a list", str: "a string", bool: "true or false", type(None): "null"}.get(type(value), "a number")


def json_faults(text: bytes, value: object) -> tuple[Fault, ...]:
    """Return the faults that a parser of JSON drops without an error: of a key that an object has twice all values but
    the last, and numbers that are not finite. `value` is the result of a strict parser, or None if that refuses it.

    A value without such keys has as many colons as its text, which is quickly seen.
    """
    try:
        if text.count(b":") == orjson.dumps(value).count(b":"):
            return ()
    except orjson.JSONEncodeError:  # deep nesting
        pass
    found: dict[Fault, None] = {}

    def note_pairs(pairs: list[tuple[str, object]]) -> None:
        if len(dict(pairs)) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice = (storable(name)[:_LONGEST_KEY] for name, count in counts.items() if count > 1)
            found.update(((f"(twice in an object) {name}", "ignored but for the last value"), None) for name in twice)

    def note_number(number: str) -> None:
        if not math.isfinite(float(number)):
            found[_NOT_FINITE] = None

    try:
        json.loads(
            text, object_pairs_hook=note_pairs, parse_int=str, parse_float=note_number, parse_constant=note_number
        )
    except (ValueError, RecursionError):
        return ()
    return tuple(found)
