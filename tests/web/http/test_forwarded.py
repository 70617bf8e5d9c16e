"""gunicorn with our settings: facts about the request that a client's headers cannot forge."""

import runpy
import socket
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from gunicorn.config import Config
from gunicorn.http import wsgi
from gunicorn.http.parser import RequestParser

LOCAL, SOCKET = ("127.0.0.1", 40000), ""


@pytest.fixture(scope="module")
def config() -> Config:
    found = Config()
    for name, value in runpy.run_path(str(Path(settings.BASE_DIR) / "gunicorn.conf.py")).items():
        if name in found.settings:
            found.set(name, value)
    return found


def environ(config: Config, header: str, peer: object = LOCAL) -> dict[str, Any]:
    """The application's environment for a request with this header."""
    here, there = socket.socketpair()
    with here, there:
        text = f"GET /p/acme/ HTTP/1.1\r\nHost: winnow.example\r\n{header}\r\n\r\n"
        request = next(RequestParser(config, [text.encode()], peer))
        found: dict[str, Any] = wsgi.create(request, here, peer, ("127.0.0.1", 8000), config)[1]
    return found


@pytest.mark.parametrize("peer", [LOCAL, SOCKET])
@pytest.mark.parametrize(
    "header",
    [
        "SCRIPT_NAME: /p",
        "PATH_INFO: /api/v1/metrics",
        "X-Script-Name: /p",
        "REMOTE_USER: admin",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Protocol: ssl",
        "X-Forwarded-Ssl: on",
        "X_FORWARDED_PROTO: https",
        "X_Forwarded_For: 10.0.0.1",
        "Script-Url: /p",
    ],
)
def test_headers_say_nothing_about_the_request(config: Config, header: str, peer: object) -> None:
    plain, found = environ(config, "X-Other: 1", peer), environ(config, header, peer)
    for name in ("SCRIPT_NAME", "PATH_INFO", "wsgi.url_scheme", "REMOTE_USER", "REMOTE_ADDR", "SCRIPT_URL"):
        assert found.get(name) == plain.get(name)
    assert found["PATH_INFO"] == "/p/acme/"
    if "_" in header.partition(":")[0]:
        assert set(found) - set(plain) == set()
