"""Connections to the addresses that were checked: httpx transports, and sockets for other clients.

A client that resolves a name again can reach another address than the one that was checked. These resolve once and
connect to that address; the TLS server name and the `Host` header stay the host's. Each redirect is a request of its
own, so it is checked too. Behind a proxy of the environment the host is checked here and resolved by the proxy.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import httpx

from curation.web.outbound.addresses import Purpose, UnresolvableHost, checked_addresses, proxy_for

# A connection belongs to a name and its address; with another name at the same address it must not be used again.
_NO_REUSE = httpx.Limits(max_keepalive_connections=0)
# Not the event loop's own threads: its end would wait for a slow resolver.
_RESOLVERS = ThreadPoolExecutor(max_workers=32, thread_name_prefix="resolve")


@cache
def _tls() -> ssl.SSLContext:
    """Reading the certificates of all authorities takes 20 ms: once per process."""
    return httpx.create_ssl_context()


class CheckedTransport(httpx.BaseTransport):
    """Raises `ForbiddenAddress` for a host that is not allowed, `httpx.ConnectError` for one without an address."""

    def __init__(self, purpose: Purpose) -> None:
        self._purpose = purpose
        self._direct = httpx.HTTPTransport(verify=_tls(), limits=_NO_REUSE)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        addresses = _found(request, self._purpose)
        if proxy := proxy_for(str(request.url)):
            return httpx.HTTPTransport(proxy=proxy, verify=_tls(), limits=_NO_REUSE).handle_request(request)
        for attempt in _attempts(request, addresses):
            try:
                return self._direct.handle_request(attempt)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        raise failure

    def close(self) -> None:
        self._direct.close()


class AsyncCheckedTransport(httpx.AsyncBaseTransport):
    """`CheckedTransport` for asyncio."""

    def __init__(self, purpose: Purpose) -> None:
        self._purpose = purpose
        self._direct = httpx.AsyncHTTPTransport(verify=_tls(), limits=_NO_REUSE)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        loop = asyncio.get_running_loop()
        addresses = await loop.run_in_executor(_RESOLVERS, _found, request, self._purpose)
        if proxy := proxy_for(str(request.url)):
            proxied = httpx.AsyncHTTPTransport(proxy=proxy, verify=_tls(), limits=_NO_REUSE)
            return await proxied.handle_async_request(request)
        for attempt in _attempts(request, addresses):
            try:
                return await self._direct.handle_async_request(attempt)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        raise failure

    async def aclose(self) -> None:
        await self._direct.aclose()


async def resolve(host: str, purpose: Purpose) -> tuple[str, ...]:
    """`checked_addresses` in a thread."""
    return await asyncio.get_running_loop().run_in_executor(_RESOLVERS, checked_addresses, host, purpose)


async def open_socket(host: str, port: int, purpose: Purpose, *, seconds: float) -> socket.socket:
    """Connect to a checked address of the host. Raises `OSError`, `TimeoutError` or `ForbiddenAddress`."""
    loop = asyncio.get_running_loop()
    try:
        addresses = await resolve(host, purpose)
    except UnresolvableHost as problem:
        raise ConnectionError(problem.detail) from None
    for address in addresses:
        opened = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        opened.setblocking(False)
        try:
            async with asyncio.timeout(seconds):
                await loop.sock_connect(opened, (address, port))
        except OSError as error:  # `TimeoutError` too
            opened.close()
            failure = error
        except BaseException:
            opened.close()
            raise
        else:
            return opened
    raise failure


def _found(request: httpx.Request, purpose: Purpose) -> tuple[str, ...]:
    try:
        return checked_addresses(request.url.raw_host.decode("ascii"), purpose)
    except UnresolvableHost as problem:
        if proxy_for(str(request.url)):
            return ()
        raise httpx.ConnectError(problem.detail, request=request) from None


def _attempts(request: httpx.Request, addresses: tuple[str, ...]) -> Iterator[httpx.Request]:
    """The request to each address. `Host` was set from the URL when the request was made."""
    host = request.url.raw_host.decode("ascii")
    named = {} if _is_literal(host) else {"sni_hostname": host}
    for address in addresses:
        yield httpx.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, **named},
        )


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
