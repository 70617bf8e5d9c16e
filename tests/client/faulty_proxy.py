"""A proxy in front of the live server that breaks on demand, between the client and a site that is sound."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

# The connection breaks before the request has reached the site, or after the site has answered.
BEFORE, AFTER = "before", "after"
# An answer of its own, with these headers.
Fault = str | tuple[int, dict[str, str]]


class Proxy:
    """`faults` are for the next requests, one each; `seen` has every request with its headers."""

    def __init__(self, target: str) -> None:
        self.faults: list[Fault] = []
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                proxy.answer(self, target)

            do_POST = do_PATCH = do_DELETE = do_GET

            def log_message(self, *_: Any) -> None:
                """Tests look at `seen`."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, handler: BaseHTTPRequestHandler, target: str) -> None:
        headers = {name.lower(): value for name, value in handler.headers.items()}
        body = handler.rfile.read(int(headers.get("content-length", 0)))
        self.seen.append((handler.command, handler.path, headers))
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, tuple):
            handler.send_response(fault[0])
            for name, value in {**fault[1], "Content-Length": "0"}.items():
                handler.send_header(name, value)
            handler.end_headers()
            return
        if fault != BEFORE:
            sent = {name: value for name, value in headers.items() if name not in ("host", "connection")}
            response = httpx.request(handler.command, target + handler.path, content=body, headers=sent, timeout=30)
        if fault is not None:
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
            return
        handler.send_response(response.status_code)
        for name, value in response.headers.items():
            if name not in ("content-length", "content-encoding", "transfer-encoding", "connection", "server", "date"):
                handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(response.content)))
        handler.end_headers()
        handler.wfile.write(response.content)

    @contextmanager
    def running(self) -> Iterator["Proxy"]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join(10)
