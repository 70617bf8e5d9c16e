"""The frames between a session and the supervisor inside its sandbox.

A frame is 4 bytes of length (big endian), then that many bytes: one of kind, then fields, each after its own 4 bytes of
length. Numbers are fields of decimal digits. `RequestFrame` and `ReplyFrame` list the fields of each kind.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from sandbox.errors import SandboxFailed

MAX_FRAME_BYTES = 64 * 1024 * 1024
_LENGTH = struct.Struct(">I")


class RequestFrame(Enum):
    """To the supervisor. Everything up to GO is sent at once and gets one reply, READY."""

    LIMITS = b"L"  # output bytes, processes, RLIMIT_NPROC or 0, RLIMIT_AS or 0
    FOLDER = b"D"  # path, octal mode
    FILE = b"F"  # path, octal mode, content
    VARIABLE = b"V"  # name, value
    FILTER = b"S"  # ELF machine, seccomp filter; ignored on another machine
    GO = b"G"  # the home
    COMMAND = b"X"  # text, milliseconds
    CHECK = b"C"  # text, milliseconds, asked.pl, then names and values
    EDIT = b"E"  # path, kind, octal mode, size, then pieces and how often each is repeated; it gets no reply


class ReplyFrame(Enum):
    READY = b"R"
    # Exit code, timed out, left, microseconds, bytes cut, cwd, first part, last part; of a checker also 1 if the runs
    # of the scenario's programs are known, each run's process id, path and arguments, and each path that it wrote.
    DONE = b"D"
    REFUSED = b"N"  # reason: a fixture could not be written
    BROKEN = b"B"  # reason: the supervisor cannot continue


@dataclass(frozen=True, slots=True)
class Frame:
    kind: ReplyFrame
    fields: tuple[bytes, ...]


def packed(kind: RequestFrame, *fields: bytes) -> bytes:
    body = kind.value + b"".join(_LENGTH.pack(len(field)) + field for field in fields)
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Assembles frames from a stream of bytes; raises `SandboxFailed` for bytes that are no frame."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> None:
        self._held += data

    def next(self) -> Frame | None:
        """Return the next whole frame, or None if more bytes are needed."""
        if len(self._held) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._held)
        if not 1 <= length <= MAX_FRAME_BYTES:
            raise SandboxFailed(f"The sandbox sent a frame of {length} bytes.")
        if len(self._held) < _LENGTH.size + length:
            return None
        body = bytes(self._held[_LENGTH.size : _LENGTH.size + length])
        del self._held[: _LENGTH.size + length]
        try:
            return Frame(ReplyFrame(body[:1]), tuple(fields_of(body[1:])))
        except ValueError:
            raise SandboxFailed(f"The sandbox sent a frame of kind {body[:1]!r}.") from None


def fields_of(body: bytes) -> Iterator[bytes]:
    """The fields of a frame, or of a field that has some; raises `SandboxFailed` for bytes that are none."""
    at = 0
    while at < len(body):
        if at + _LENGTH.size > len(body):
            raise SandboxFailed("The sandbox sent a frame that ends inside a field.")
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size
        if at + length > len(body):
            raise SandboxFailed("The sandbox sent a frame that ends inside a field.")
        yield body[at : at + length]
        at += length
