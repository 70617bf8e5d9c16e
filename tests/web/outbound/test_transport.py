"""A connection goes to the address that was checked, even if the name resolves to another one later."""

import asyncio
import http.server
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx
import pytest
from pytest_django import Settings

from curation.evaluations.live.stage import CheckedNetwork
from curation.imports.sources.download import fetch
from curation.imports.sources.rows import SourceError
from curation.llm.client.completion import CompletionRequest, EndpointTarget
from curation.llm.client.errors import Misconfigured
from curation.llm.client.litellm_client import LiteLlmClient
from curation.llm.endpoints.discover import served_models
from curation.web.outbound import transport
from curation.web.outbound.addresses import IMPORTS, MODELS, ForbiddenAddress
from curation.web.outbound.transport import AsyncCheckedTransport, CheckedTransport
from curation.web.problems import Invalid
from tests.model_server import ModelServer
from tests.serving import serving

PUBLIC = "93.184.216.34"


class _Server(http.server.BaseHTTPRequestHandler):
    hosts: list[str]

    def do_GET(self) -> None:
        self.hosts.append(self.headers["Host"])
        self.send_response(302 if self.path == "/moved" else 200)
        self.send_header("Location", f"http://inside.example:{self.request.getsockname()[1]}/secret")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[http.server.ThreadingHTTPServer]:
    _Server.hosts = []
    with serving(_Server) as made:
        yield made


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Sequence[str]]], list[str]]:
    """Names whose addresses change: each look-up takes the next, the last one stays. Returns the look-ups made."""
    real = socket.getaddrinfo

    def use(answers: dict[str, Sequence[str]]) -> list[str]:
        left, asked = {name: list(found) for name, found in answers.items()}, []

        def lookup(host: object, port: object, *args: object, **kwargs: object) -> object:
            name = host.decode() if isinstance(host, bytes) else str(host)
            if name not in left:
                return real(host, port, *args, **kwargs)  # type: ignore[arg-type]
            asked.append(name)
            found = left[name].pop(0) if len(left[name]) > 1 else left[name][0]
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (found, port or 0))]

        monkeypatch.setattr(socket, "getaddrinfo", lookup)
        return asked

    return use


def target(api_base: str, model: str = "openai/qwen") -> EndpointTarget:
    return EndpointTarget(1, "m", model, api_base, "", {"max_tokens": 5, "timeout": 3}, 1, None, None, None, None, "")


def ask(api_base: str) -> None:
    asyncio.run(LiteLlmClient().complete(target(api_base), CompletionRequest([{"role": "user", "content": "hello"}])))


def get(url: str) -> httpx.Response:
    with httpx.Client(transport=CheckedTransport(MODELS), timeout=5) as client:
        return client.get(url)


def test_one_look_up_is_checked_and_used(
    server: http.server.ThreadingHTTPServer, names: Callable[..., list[str]], settings: Settings
) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = ("127.0.0.0/8",)
    asked = names({"models.example": ["127.0.0.1", "10.9.9.9"]})
    assert get(f"http://models.example:{server.server_port}/").status_code == 200
    assert asked == ["models.example"]
    assert _Server.hosts == [f"models.example:{server.server_port}"]


def test_the_asynchronous_transport_does_the_same(
    server: http.server.ThreadingHTTPServer, names: Callable[..., list[str]], settings: Settings
) -> None:
    async def request() -> int:
        async with httpx.AsyncClient(transport=AsyncCheckedTransport(MODELS)) as client:
            return (await client.get(f"http://models.example:{server.server_port}/")).status_code

    asked = names({"models.example": ["127.0.0.1", "10.9.9.9"]})
    settings.ALLOW_PRIVATE_MODEL_HOSTS = True
    assert asyncio.run(request()) == 200 and asked == ["models.example"]
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    with pytest.raises(ForbiddenAddress):
        asyncio.run(request())


def test_discovery_does_not_follow_a_name_that_moves_inside(
    server: http.server.ThreadingHTTPServer, names: Callable[..., list[str]], settings: Settings
) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    names({"rebind.example": [PUBLIC, "127.0.0.1"]})
    with pytest.raises(Invalid):
        served_models(api_base=f"http://rebind.example:{server.server_port}/v1")
    assert _Server.hosts == []


def test_an_import_follows_no_redirect_inside(
    server: http.server.ThreadingHTTPServer, names: Callable[..., list[str]], settings: Settings, tmp_path: Path
) -> None:
    settings.ALLOW_PRIVATE_IMPORT_HOSTS = ("start.example",)
    names({"start.example": ["127.0.0.1"], "inside.example": ["127.0.0.1"]})
    with (tmp_path / "got").open("wb") as file, pytest.raises(SourceError, match="inside.example"):
        fetch(f"http://start.example:{server.server_port}/moved", file, most=100, checkpoint=lambda: None)
    assert len(_Server.hosts) == 1


@pytest.mark.parametrize("url", ["http://rebind.example:{port}/x", "http://[::ffff:127.0.0.1]:{port}/x"])
def test_an_import_of_a_private_address_is_refused_when_it_connects(
    server: http.server.ThreadingHTTPServer,
    names: Callable[..., list[str]],
    settings: Settings,
    tmp_path: Path,
    url: str,
) -> None:
    settings.ALLOW_PRIVATE_IMPORT_HOSTS = False
    names({"rebind.example": ["127.0.0.1"]})
    with (tmp_path / "got").open("wb") as file, pytest.raises(SourceError, match="private address"):
        fetch(url.format(port=server.server_port), file, most=100, checkpoint=lambda: None)
    assert _Server.hosts == []


def test_a_model_call_does_not_follow_a_name_that_moves_inside(
    model_server: ModelServer, names: Callable[..., list[str]], settings: Settings
) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    names({"rebind.example": ["127.0.0.1"]})
    for host in ("rebind.example", "127.0.0.1", "[::ffff:127.0.0.1]"):
        with pytest.raises(Misconfigured, match="private address"):
            ask(f"http://{host}:{model_server.port}/v1")
    assert model_server.counts().asked == 0


def test_a_model_call_reaches_the_address_that_was_checked(
    model_server: ModelServer, names: Callable[..., list[str]], settings: Settings
) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = ("models.example",)
    asked = names({"models.example": ["127.0.0.1", "10.9.9.9"]})
    ask(model_server.api_base.replace("127.0.0.1", "models.example"))
    assert model_server.counts().asked == 1 and asked == ["models.example"]


def test_a_provider_whose_own_address_is_private_is_refused(settings: Settings) -> None:
    """LiteLLM calls Ollama on the worker's own machine if there is no base URL."""
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    request = CompletionRequest([{"role": "user", "content": "hello"}])
    with pytest.raises(Misconfigured, match="private address"):
        asyncio.run(LiteLlmClient().complete(target("", "ollama/llama3"), request))


def test_an_environment_server_is_reached_at_the_address_that_was_checked(
    server: http.server.ThreadingHTTPServer, names: Callable[..., list[str]], settings: Settings
) -> None:
    async def peer() -> object:
        opened = await CheckedNetwork().socket(f"ws://env.example:{server.server_port}", 5.0)
        assert opened is not None
        with opened:
            return opened.getpeername()

    asked = names({"env.example": ["127.0.0.1", "10.9.9.9"]})
    settings.ALLOW_PRIVATE_MODEL_HOSTS = True
    assert asyncio.run(peer()) == ("127.0.0.1", server.server_port) and asked == ["env.example"]
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    with pytest.raises(PermissionError, match="private address"):
        asyncio.run(peer())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_tls_verifies_the_name_and_not_the_address(
    server: http.server.ThreadingHTTPServer,
    names: Callable[..., list[str]],
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.ALLOW_PRIVATE_IMPORT_HOSTS = True
    names({"models.example": ["127.0.0.1"], "other.example": ["127.0.0.1"]})
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=models.example"]
    san = ["-addext", "subjectAltName=DNS:models.example", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *san], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setattr(transport, "_tls", httpx.create_ssl_context)
    with httpx.Client(transport=CheckedTransport(IMPORTS), timeout=5) as client:
        assert client.get(f"https://models.example:{server.server_port}/").status_code == 200
        with pytest.raises(httpx.ConnectError, match="other.example"):
            client.get(f"https://other.example:{server.server_port}/")


def test_clients_share_the_certificates_of_the_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each delivery of a webhook read them again, in the event loop of all others."""
    CheckedTransport(MODELS)
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: pytest.fail("they were read again"))
    CheckedTransport(IMPORTS)
    AsyncCheckedTransport(MODELS)
