"""The frames between a session and the supervisor inside its sandbox.

A frame is 4 bytes of length (big endian), then so many bytes: one of kind, then fields, each with its own 4 bytes of
length before it. Numbers are fields of decimal digits. What a kind means stands with `Ask` and `Reply`.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from sandbox.errors import SandboxFailed

FRAME_MOST = 64 * 1024 * 1024
_LENGTH = struct.Struct(">I")


class Ask(Enum):
    """What the supervisor is asked. Everything up to GO is sent in one go and answered once, by READY."""

    LIMITS = b"L"  # output bytes, processes, RLIMIT_NPROC or 0, RLIMIT_AS or 0
    FOLDER = b"D"  # path, octal mode
    FILE = b"F"  # path, octal mode, content
    VARIABLE = b"V"  # name, value
    INODES = b"I"  # tmpfs, most files in it; for a supervisor that was given CAP_SYS_ADMIN over its mounts
    FILTER = b"S"  # ELF machine, seccomp filter; one of another machine is passed over
    GO = b"G"  # the home
    COMMAND = b"X"  # text, milliseconds
    CHECK = b"C"  # text, terminal, reason, milliseconds


class Reply(Enum):
    READY = b"R"
    DONE = b"D"  # exit code, timed out, left, microseconds, bytes cut, cwd, first part, last part
    REFUSED = b"N"  # reason: a fixture could not be put there
    BROKEN = b"B"  # reason: the supervisor cannot go on


@dataclass(frozen=True, slots=True)
class Frame:
    kind: Reply
    fields: tuple[bytes, ...]


def packed(kind: Ask, *fields: bytes) -> bytes:
    body = kind.value + b"".join(_LENGTH.pack(len(field)) + field for field in fields)
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Puts frames together from bytes as they come; raises `SandboxFailed` at bytes that are no frame."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> None:
        self._held += data

    def next(self) -> Frame | None:
        """The next whole frame, or None where more bytes have to come first."""
        if len(self._held) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._held)
        if not 1 <= length <= FRAME_MOST:
            raise SandboxFailed(f"The sandbox sent a frame of {length} bytes.")
        if len(self._held) < _LENGTH.size + length:
            return None
        body = bytes(self._held[_LENGTH.size : _LENGTH.size + length])
        del self._held[: _LENGTH.size + length]
        try:
            return Frame(Reply(body[:1]), tuple(_fields(body[1:])))
        except ValueError:
            raise SandboxFailed(f"The sandbox sent a frame of kind {body[:1]!r}.") from None


def _fields(body: bytes) -> Iterator[bytes]:
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
