"""A web server of a test's own, on loopback and a free port; and such a port for others."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(
    handler: type[BaseHTTPRequestHandler], *, port: int = 0, **attributes: object
) -> Iterator[ThreadingHTTPServer]:
    """A running server. The `attributes` are those of the handler's class."""
    server = ThreadingHTTPServer(("127.0.0.1", port), type("Handler", (handler,), attributes))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def url_of(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"
