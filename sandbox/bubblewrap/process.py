"""A running bubblewrap process: a `Channel` over the socket pair that is its stdin and stdout."""

import os
import select
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from sandbox.errors import SandboxExhausted, SandboxFailed

ENDING_SECONDS = 5.0


class BubblewrapProcess:
    """Starts `command` with the open files `pass_fds`; implements `Channel`.

    `is_exhausted` says whether the kernel has killed one of its processes for lack of memory. `on_end` is called once,
    when no process of the sandbox is left. The sandbox ends with the thread that started it (`--die-with-parent` counts
    threads), with this process and with the socket.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        pass_fds: Collection[int],
        is_exhausted: Callable[[], bool],
        on_end: Callable[[], None],
    ) -> None:
        self._is_exhausted = is_exhausted
        self._when_gone = on_end
        self._closed = False
        self._process: subprocess.Popen[bytes]
        self._stderr = os.memfd_create("sandbox-stderr")
        self._socket, theirs = socket.socketpair()
        try:
            # Neither preexec_fn nor user= nor cwd=: with them Python forks the whole server instead of vfork.
            self._process = subprocess.Popen(  # noqa: S603 - the command is ours, nothing in it is a scenario's
                command, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=self._stderr, env={}, pass_fds=pass_fds
            )
        except OSError as error:
            self._socket.close()
            os.close(self._stderr)
            self._closed = True
            on_end()
            raise SandboxFailed(f"bubblewrap could not be started: {error}") from None
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, data: bytes, deadline: float) -> None:
        try:
            self._socket.settimeout(_remaining(deadline))
            self._socket.sendall(data)
        except OSError as error:
            raise self._lost(f"The sandbox cannot be reached ({error}).") from None

    def receive(self, deadline: float) -> bytes:
        try:
            self._socket.settimeout(_remaining(deadline))
            data = self._socket.recv(1 << 18)
        except TimeoutError:
            raise self._lost("The sandbox does not respond.") from None
        except OSError as error:
            raise self._lost(f"The connection to the sandbox broke ({error}).") from None
        if not data:
            raise self._lost("The sandbox ended by itself.")
        return data

    def kill(self) -> None:
        if not self._closed:
            self._process.kill()

    def close(self) -> None:
        """The supervisor ends when its stdin ends, and with it everything in its PID namespace.

        The shutdown wakes a thread that waits for a command: its `recv` would keep the socket open.
        """
        if self._closed:
            return
        self._closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        if self._process.poll() is None and not _ended(self._process.pid, ENDING_SECONDS):
            self._process.kill()
        self._process.wait()
        os.close(self._stderr)
        self._when_gone()

    def _lost(self, how: str) -> SandboxFailed:
        said = f"{how} {self._said()}".rstrip()
        return SandboxExhausted(said) if not self._closed and self._is_exhausted() else SandboxFailed(said)

    def _said(self) -> str:
        """What bubblewrap or the supervisor wrote to stderr, after a short wait for it; nothing after the close."""
        if self._closed:
            return ""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=0.2)
        text = os.pread(self._stderr, 4096, 0).decode(errors="replace").strip()
        return f"It wrote: {text}" if text else ""


def _remaining(deadline: float) -> float:
    return max(0.001, deadline - time.monotonic())


def _ended(pid: int, seconds: float) -> bool:
    """Wait for a child's end without polling; False if it did not end in time."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(descriptor)
