"""JSON lines, cut without ever holding more of a line than the limit."""

from collections.abc import Iterator
from typing import BinaryIO

from curation.imports.sources.rows import Position
from curation.imports.sources.text_rows import Raw

BOM = b"\xef\xbb\xbf"


def split_lines(file: BinaryIO, start: Position, longest: int) -> Iterator[Raw]:
    """One record a line. Blank lines count, so that `offset` + 1 is the line's number; CRLF and a BOM are dropped."""
    file.seek(start.byte)
    offset, byte = start.offset, start.byte
    while line := file.readline(longest + 2):
        byte += len(line)
        refusal = ""
        if len(line.rstrip(b"\r\n")) > longest:
            byte += _skip_line(file, line)
            line, refusal = b"", f"longer than {longest // 1024 // 1024} MB (the server's limit for one line)"
        after = Position(offset + 1, byte)
        text = (line.removeprefix(BOM) if offset == 0 else line).strip()
        yield Raw(offset, text, after, refusal)
        offset += 1


def _skip_line(file: BinaryIO, line: bytes) -> int:
    """Reads on to the end of a line that is too long; how many bytes that took."""
    skipped = 0
    while line and not line.endswith(b"\n"):
        line = file.readline(1024 * 1024)
        skipped += len(line)
    return skipped
