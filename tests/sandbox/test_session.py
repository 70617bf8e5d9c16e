"""The session's side of the frames: a supervisor that is silent, dead or sends nonsense is a failed sandbox."""

import struct
import time
from collections.abc import Callable, Iterable

import pytest

from sandbox.errors import SandboxExhausted, SandboxFailed, SetupRefused
from sandbox.protocol import Fixture, Setup
from sandbox.session import GRACE_SECONDS, SupervisedSession, decode_output, open_session


def frame(kind: bytes, *fields: bytes) -> bytes:
    body = kind + b"".join(struct.pack(">I", len(field)) + field for field in fields)
    return struct.pack(">I", len(body)) + body


READY = frame(b"R")
DONE = frame(b"D", b"0", b"0", b"0", b"1500", b"0", b"/srv", b"he", b"llo\n")


class Scripted:
    """A channel that gives out `parts` and then ends, or raises an error among them."""

    def __init__(self, *parts: bytes | Exception) -> None:
        self.parts = list(parts)
        self.sent: list[bytes] = []
        self.deadlines: list[float] = []
        self.killed = self.closed = 0

    def send(self, data: bytes, deadline: float) -> None:
        self.sent.append(data)

    def receive(self, deadline: float) -> bytes:
        self.deadlines.append(deadline)
        part = self.parts.pop(0) if self.parts else SandboxFailed("it ended")
        if isinstance(part, Exception):
            raise part
        return part

    def kill(self) -> None:
        self.killed += 1

    def close(self) -> None:
        self.closed += 1


def opened(*parts: bytes | Exception) -> tuple[SupervisedSession, Scripted]:
    channel = Scripted(READY, *parts)
    return open_session(channel, Setup()), channel


def one_byte_each(data: bytes) -> Iterable[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def test_an_answer_may_come_in_any_pieces() -> None:
    session, _ = opened(*one_byte_each(DONE))
    result = session.exec("say hello")
    assert (result.output, result.exit_code, result.duration, session.cwd()) == ("hello\n", 0, 0.0015, "/srv")


def test_the_deadline_is_the_commands_limit_and_some_grace() -> None:
    session, channel = opened(DONE)
    session.exec("true", timeout=7)
    assert channel.deadlines[-1] == pytest.approx(time.monotonic() + 7 + GRACE_SECONDS, abs=2)


@pytest.mark.parametrize(
    "answer",
    [
        frame(b"B", b"fork: no room"),
        frame(b"R"),
        frame(b"Z"),
        frame(b"N", b"x"),
        frame(b"D", b"0"),
        frame(b"D", b"zero", b"0", b"0", b"1", b"0", b"/", b"", b""),
        struct.pack(">I", 0),
        struct.pack(">I", 2**31),
        struct.pack(">I", 4) + b"Dabc",
        struct.pack(">I", 9) + b"D" + struct.pack(">I", 99) + b"abcd",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        SandboxFailed("silence"),
        DONE[:-3],
    ],
)
@pytest.mark.parametrize("call", [lambda s: s.exec("true"), lambda s: s.check("true", terminal="exit")])
def test_anything_but_a_result_is_infra_and_the_end(
    answer: bytes | Exception, call: Callable[[SupervisedSession], object]
) -> None:
    session, channel = opened(answer)
    with pytest.raises(SandboxFailed):
        call(session)
    assert channel.killed
    with pytest.raises(SandboxFailed, match="over"):
        session.exec("true")
    session.close()
    assert channel.closed == 1


def test_a_session_that_its_agent_used_up_is_the_agents() -> None:
    session, channel = opened(SandboxExhausted("it ended"))
    for result in (session.exec("true"), session.exec("true")):
        assert (result.exit_code, result.left, result.timed_out) == (137, False, False)
        assert result.output.startswith("sh: out of memory")
    assert session.cwd() == "/home/agent"
    assert not session.check("true", terminal="exit").passed
    assert channel.killed == 1
    session.close()
    with pytest.raises(SandboxFailed, match="closed"):
        session.check("true", terminal="exit")


@pytest.mark.parametrize(
    ("answer", "error"),
    [(frame(b"N", b"/srv/a: no room"), SetupRefused), (frame(b"B", b"x"), SandboxFailed), (DONE, SandboxFailed)],
)
def test_an_opening_that_fails_leaves_nothing_open(answer: bytes, error: type[Exception]) -> None:
    channel = Scripted(answer)
    with pytest.raises(error):
        open_session(channel, Setup())
    assert channel.closed == 1


def test_a_senseless_setup_never_reaches_the_sandbox() -> None:
    channel = Scripted(READY)
    with pytest.raises(SetupRefused, match="/etc/x"):
        open_session(channel, Setup(fixtures=[Fixture("/etc/x", b"")]))
    assert channel.sent == [] and channel.closed == 1


def test_the_checker_is_the_last_call() -> None:
    session, _ = opened(DONE, DONE)
    assert session.check("true", terminal="exit").passed
    with pytest.raises(SandboxFailed, match="checker has run"):
        session.exec("true")


def test_a_checker_that_was_timed_out_has_not_passed() -> None:
    session, _ = opened(frame(b"D", b"0", b"1", b"0", b"1500", b"0", b"/", b"", b""))
    assert not session.check("true", terminal="exit").passed


@pytest.mark.parametrize(
    ("first", "last", "cut", "text"),
    [
        (b"a\xc3", b"\xa9b", 0, "aéb"),
        (b"a\xc3", b"\xa9b", 5, "a\n[… 5 bytes left out …]\nb"),
        (b"a\x00\xffb", b"", 0, "a�b"),
        (b"", b"\x80\x80\x80\x80", 1, "\n[… 1 bytes left out …]\n�"),
        (b"", b"", 0, ""),
    ],
)
def test_output_becomes_text(first: bytes, last: bytes, cut: int, text: str) -> None:
    assert decode_output(first, last, cut) == text
