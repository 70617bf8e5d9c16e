"""Connections that fail in every way, with real sockets: the words, and whether the request was sent."""

import asyncio
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from curation.llm.client.completion import CompletionRequest
from curation.llm.client.errors import CallError, TimedOut, Transient, Unreachable
from curation.llm.client.gateway import client_for, target_of
from tests.factories import make_endpoint, make_project
from tests.serving import free_port

pytestmark = pytest.mark.django_db
REQUEST = CompletionRequest([{"role": "user", "content": "Are you there?"}])


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port of a server that does this with each connection."""
    server = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                serve(connection)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def closes(connection: socket.socket) -> None:
    connection.recv(10)


def is_silent(connection: socket.socket) -> None:
    threading.Event().wait(1.5)


def closes_after_reading(connection: socket.socket) -> None:
    connection.recv(65536)


def error_of(api_base: str, timeout: float = 5.0) -> CallError:
    target = target_of(
        make_endpoint(make_project(), "m", model="openai/m", api_base=api_base, params={"timeout": timeout})
    )

    async def call() -> None:
        await client_for(target).complete(target, REQUEST)

    with pytest.raises(CallError) as caught:
        asyncio.run(call())
    assert " object at 0x" not in str(caught.value)
    assert "litellm" not in str(caught.value).lower()
    return caught.value


def test_a_refused_connection() -> None:
    port = free_port()
    error = error_of(f"http://127.0.0.1:{port}/v1")
    assert isinstance(error, Unreachable)
    assert str(error) == f"127.0.0.1:{port} refused the connection"


def test_a_name_that_does_not_exist() -> None:
    error = error_of("http://no-such-host.invalid/v1")
    assert isinstance(error, Unreachable)
    assert str(error) == "the name no-such-host.invalid cannot be resolved"


def test_a_server_that_speaks_no_tls() -> None:
    def plain(connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with listening(plain) as port:
        error = error_of(f"https://127.0.0.1:{port}/v1")
    assert isinstance(error, Unreachable)
    assert str(error).startswith(f"no TLS connection to 127.0.0.1:{port}: ")


def test_a_server_that_closes_during_the_handshake() -> None:
    with listening(closes) as port:
        error = error_of(f"https://127.0.0.1:{port}/v1")
    assert isinstance(error, Unreachable)
    assert f"127.0.0.1:{port}" in str(error)


def test_a_certificate_that_nobody_signed(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*_certificate(tmp_path))

    def handshake(connection: socket.socket) -> None:
        try:
            context.wrap_socket(connection, server_side=True).close()
        except OSError:
            return

    with listening(handshake) as port:
        error = error_of(f"https://127.0.0.1:{port}/v1")
    assert isinstance(error, Unreachable)
    assert str(error).startswith(f"the TLS certificate of 127.0.0.1:{port} is not valid: self")


def test_a_handshake_without_end() -> None:
    with listening(is_silent) as port:
        error = error_of(f"https://127.0.0.1:{port}/v1", timeout=0.5)
    assert isinstance(error, Unreachable)
    assert str(error) == "no connection to the endpoint in time"


def test_a_proxy_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
    error = error_of("https://127.0.0.1:9/v1")
    assert isinstance(error, Unreachable)
    assert str(error) == f"the proxy 127.0.0.1:{port} refused the connection"


def test_a_request_that_was_sent_and_got_no_answer_is_not_unreachable() -> None:
    with listening(closes_after_reading) as port:
        error = error_of(f"http://127.0.0.1:{port}/v1")
    assert isinstance(error, Transient)
    assert not isinstance(error, Unreachable)
    assert str(error) == "the endpoint closed the connection before it answered"


def test_a_request_whose_connection_broke_is_sent_once() -> None:
    """LiteLLM would send it again: the endpoint may have begun to answer, and the record has one call."""
    requests = []

    def resets(connection: socket.socket) -> None:
        requests.append(connection.recv(10))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with listening(resets) as port:
        error = error_of(f"http://127.0.0.1:{port}/v1")
    assert not isinstance(error, Unreachable)
    assert "the connection broke before the answer" in str(error) or "closed the connection" in str(error)
    assert len(requests) == 1


def test_silence_after_the_request_is_a_timeout() -> None:
    with listening(is_silent) as port:
        error = error_of(f"http://127.0.0.1:{port}/v1", timeout=0.5)
    assert isinstance(error, TimedOut)


def _certificate(folder: Path) -> tuple[str, str]:
    names = (f"{folder}/cert.pem", f"{folder}/key.pem")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    subprocess.run([*command, "-out", names[0], "-keyout", names[1]], check=True, capture_output=True)
    return names
