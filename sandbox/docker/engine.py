"""The Docker engine that the environment names, and the SDK's clients for it.

`DOCKER_HOST`, `DOCKER_TLS_VERIFY` and `DOCKER_CERT_PATH` have the meaning that Docker's own command gives them.
"""

import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, LifoQueue
from typing import TypedDict, Unpack

from docker import APIClient
from docker.errors import DockerException
from docker.tls import TLSConfig
from docker.transport.unixconn import UnixHTTPAdapter, UnixHTTPConnectionPool
from docker.utils import kwargs_from_env
from requests.exceptions import RequestException
from urllib3.exceptions import HTTPError

from sandbox.errors import SandboxError, SandboxUnavailable
from sandbox.rootfs import RECIPE

IMAGE = f"winnow-sandbox:{RECIPE}"
QUICK, PATIENT = 3, 60
_NAME = re.compile(r"[a-z0-9][a-z0-9._/:@-]{0,200}", re.IGNORECASE)
ENGINE_ERRORS = (DockerException, RequestException, HTTPError, OSError)


@dataclass(frozen=True, slots=True)
class DockerSettings:
    """The operator's settings for Docker sessions. No scenario and no request can change them."""

    image: str = IMAGE
    runtime: str = ""

    @classmethod
    def from_environment(cls) -> "DockerSettings":
        """Raises `SandboxUnavailable` for a name that Docker would refuse."""
        image = os.environ.get("SANDBOX_IMAGE", "") or IMAGE
        runtime = os.environ.get("SANDBOX_RUNTIME", "")
        for name, value in (("SANDBOX_IMAGE", image), ("SANDBOX_RUNTIME", runtime)):
            if value and not _NAME.fullmatch(value):
                raise SandboxUnavailable(f"{name} is {value!r}, which is not a name that Docker accepts.")
        return cls(image, runtime)


class _Where(TypedDict, total=False):
    """The engine's address from Docker's variables."""

    base_url: str
    tls: TLSConfig


class NoEngine(DockerException):
    """No engine responds at Docker's address."""


class OneEngine(UnixHTTPAdapter):
    """The SDK keeps a pool of connections per URL, so one per container; here all URLs share one."""

    def get_connection(self, url: bytes | str, proxies: object = None) -> UnixHTTPConnectionPool:
        return super().get_connection("engine", proxies)


class BoundedClient(APIClient):
    """The SDK waits without end when it attaches or reads events; here every request has a timeout."""

    def __init__(self, *, version: str | None, timeout: int, **where: Unpack[_Where]) -> None:
        super().__init__(**where, version=version, timeout=timeout)
        adapter = self.get_adapter(self.base_url)
        if isinstance(adapter, UnixHTTPAdapter):
            self.mount(self.base_url, OneEngine(f"http+unix://{adapter.socket_path}", timeout))
            adapter.close()

    def request(self, *args, **kwargs):  # type: ignore[no-untyped-def]  # requests' own signature of 16 arguments
        kwargs["timeout"] = kwargs.get("timeout") or self.timeout
        return super().request(*args, **kwargs)


class Engine:
    """The clients of one process. A client is used by one thread at a time (`requests` sessions are not thread-safe).

    A forked process starts with none: two processes cannot share a connection.
    """

    def __init__(self) -> None:
        self._free: dict[int, LifoQueue[BoundedClient]] = {}
        self._version = ""

    @contextmanager
    def client(self, seconds: int = PATIENT) -> Iterator[BoundedClient]:
        """Lend a client whose requests time out after `seconds`. An error closes its connections."""
        free = self._free.setdefault(os.getpid(), LifoQueue())
        try:
            client = free.get_nowait()
        except Empty:
            client = self._connect(seconds)
        client.timeout = seconds
        try:
            yield client
        except BaseException:
            client.close()
            self._version = ""  # another engine may run there now
            raise
        free.put(client)

    def _connect(self, seconds: int) -> BoundedClient:
        try:
            client = BoundedClient(**kwargs_from_env(), version=self._version or None, timeout=seconds)
        except ENGINE_ERRORS as error:
            raise NoEngine(f"no engine answers at {engine_address()}") from error
        self._version = client.api_version
        return client


def docker_host() -> str:
    return os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


def engine_address() -> str:
    """The engine's address for any reader: the path of a socket, but no address in a private network."""
    host = docker_host()
    return host if host.startswith("unix://") else "the address in DOCKER_HOST"


@contextmanager
def engine_errors_as(kind: Callable[[str], SandboxError]) -> Iterator[None]:
    """Raise errors of the engine and of the connection to it as `kind`."""
    try:
        yield
    except ENGINE_ERRORS as error:
        raise kind(f"Docker: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """The error's message in one line."""
    said = getattr(error, "explanation", None) or str(error) or type(error).__name__
    return " ".join(str(said).split())[:300]


def raw_socket(attached: object) -> socket.socket:
    """The socket under what `attach_socket` returns, which wraps a Unix or plain TCP socket for reading only."""
    found = getattr(attached, "_sock", attached)
    if not isinstance(found, socket.socket):
        raise SandboxUnavailable(f"Docker: no socket to attach by ({type(attached).__name__}).")
    return found
