"""aiohttp's connector for model calls: it connects only to addresses that were checked."""

import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from curation.web.outbound.addresses import MODELS, ForbiddenAddress, UnresolvableHost, check_address
from curation.web.outbound.transport import resolve

SocketFactory = Callable[[Any], socket.socket]


class CheckedResolver(AbstractResolver):
    """Resolves a name once per connection and checks every address. Proxies of the environment are the operator's."""

    def __init__(self) -> None:
        self.proxies = {(parts.hostname, parts.port or 80) for parts in map(urlsplit, getproxies().values())}
        self.checked: set[tuple[object, object]] = set()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        if (host, port) in self.proxies:
            found = await ThreadedResolver().resolve(host, port, family)
            self.checked.update((entry["host"], port) for entry in found)
            return found
        try:
            addresses = await resolve(host, MODELS)
        except UnresolvableHost as problem:
            raise OSError(problem.detail) from None
        self.checked.update((address, port) for address in addresses)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Nothing to close."""


class CheckedConnector(TCPConnector):
    """A numeric host passes no resolver, so sockets are checked too."""

    def __init__(self, **given: Any) -> None:
        resolver, make = CheckedResolver(), given.pop("socket_factory", None) or _socket

        def checked(info: Any) -> socket.socket:
            address, port = info[4][:2]
            if (address, port) not in resolver.checked | resolver.proxies:
                try:
                    check_address(address, address, MODELS)
                except ForbiddenAddress as problem:
                    raise OSError(problem.detail) from problem
            return make(info)

        super().__init__(**given, resolver=resolver, socket_factory=checked)


def _socket(info: Any) -> socket.socket:
    made = socket.socket(*info[:3])
    made.setblocking(False)
    return made
