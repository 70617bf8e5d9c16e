"""The Docker engine that the environment names, and the SDK's clients for it.

`DOCKER_HOST`, `DOCKER_TLS_VERIFY` and `DOCKER_CERT_PATH` mean what they mean to Docker's own command.
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
    """What this machine's operator says of Docker's sessions. Neither a scenario nor a request can change it."""

    image: str = IMAGE
    runtime: str = ""

    @classmethod
    def from_environment(cls) -> "DockerSettings":
        """Raises `SandboxUnavailable` where a name makes no sense."""
        image = os.environ.get("SANDBOX_IMAGE", "") or IMAGE
        runtime = os.environ.get("SANDBOX_RUNTIME", "")
        for name, value in (("SANDBOX_IMAGE", image), ("SANDBOX_RUNTIME", runtime)):
            if value and not _NAME.fullmatch(value):
                raise SandboxUnavailable(f"{name} is {value!r}, which Docker does not take as a name.")
        return cls(image, runtime)


class _Where(TypedDict, total=False):
    """What Docker's variables say of the engine's place."""

    base_url: str
    tls: TLSConfig


class NoEngine(DockerException):
    """Nothing answers where Docker's engine should."""


class OneEngine(UnixHTTPAdapter):
    """The SDK keeps a pool of connections for each URL, so for each container: here they are used again."""

    def get_connection(self, url: bytes | str, proxies: object = None) -> UnixHTTPConnectionPool:
        return super().get_connection("engine", proxies)


class BoundedClient(APIClient):
    """The SDK waits for ever when it attaches; here every request has an end."""

    def __init__(self, *, version: str | None, timeout: int, **where: Unpack[_Where]) -> None:
        super().__init__(**where, version=version, timeout=timeout)
        adapter = self.get_adapter(self.base_url)
        if isinstance(adapter, UnixHTTPAdapter):
            self.mount(self.base_url, OneEngine(f"http+unix://{adapter.socket_path}", timeout))
            adapter.close()

    def request(self, *args, **kwargs):  # type: ignore[no-untyped-def]  # requests' own signature of 16 arguments
        kwargs.setdefault("timeout", self.timeout)
        return super().request(*args, **kwargs)


class Engine:
    """The clients of one process: each is one thread's while it is lent (`requests` does not share its sessions).

    A process that was forked begins with none: a connection that two processes write to answers neither.
    """

    def __init__(self) -> None:
        self._free: dict[int, LifoQueue[BoundedClient]] = {}
        self._version = ""

    @contextmanager
    def client(self, seconds: int = PATIENT) -> Iterator[BoundedClient]:
        """A client whose requests end within `seconds` each; what goes wrong in between costs its connections."""
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
            self._version = ""  # perhaps another engine answers by now
            raise
        free.put(client)

    def close(self) -> None:
        """Ends this process's idle connections."""
        free = self._free.pop(os.getpid(), None)
        while free is not None and not free.empty():
            free.get_nowait().close()

    def _connect(self, seconds: int) -> BoundedClient:
        try:
            client = BoundedClient(**kwargs_from_env(), version=self._version or None, timeout=seconds)
        except ENGINE_ERRORS as error:
            raise NoEngine(f"no engine answers at {place()}") from error
        self._version = client.api_version
        return client


def docker_host() -> str:
    return os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


def place() -> str:
    """The engine's place as it may be shown to anybody: a socket's path, but no address in somebody's network."""
    host = docker_host()
    return host if host.startswith("unix://") else "the address in DOCKER_HOST"


@contextmanager
def told_as(kind: Callable[[str], SandboxError]) -> Iterator[None]:
    """What the engine, or the way to it, has to complain of becomes an error of that kind."""
    try:
        yield
    except ENGINE_ERRORS as error:
        raise kind(f"Docker: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """The last word of an error's chain, in one line."""
    said = getattr(error, "explanation", None) or str(error) or type(error).__name__
    return " ".join(str(said).split())[:300]


def raw_socket(attached: object) -> socket.socket:
    """The socket below what `attach_socket` gives: on a Unix or plain TCP engine it is wrapped for reading only."""
    found = getattr(attached, "_sock", attached)
    if not isinstance(found, socket.socket):
        raise SandboxUnavailable(f"Docker: no socket to attach by ({type(attached).__name__}).")
    return found
