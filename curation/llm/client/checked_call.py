"""The checks of each call: the host behind a proxy, the key's variable, and every address that it connects to."""

import asyncio
import os
import socket
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from curation.llm.client.completion import EndpointTarget
from curation.llm.client.errors import Misconfigured
from curation.llm.endpoints.keys import why_no_base_url, why_refused
from curation.web.outbound.addresses import MODELS, ForbiddenAddress, UnresolvableHost, check_address, refuse_private
from curation.web.outbound.transport import resolve
from curation.web.problems import Problem


async def check_host(api_base: str) -> None:
    """Behind a proxy the proxy connects, so the host is checked here. The look-up blocks: it runs in a thread."""
    try:
        await asyncio.to_thread(refuse_private, api_base, MODELS)
    except Problem as problem:
        raise Misconfigured(problem.detail) from problem


def key_of(target: EndpointTarget) -> str:
    """The key in the endpoint's variable; a placeholder if the endpoint has none.

    Settings may have changed since the endpoint was saved, so both rules are checked with each call.
    """
    if target.api_base and (reason := why_no_base_url(target.model)):
        raise Misconfigured(reason)
    if reason := why_refused(
        variable=target.api_key_env, model=target.model, api_base=target.api_base, project=target.project
    ):
        raise Misconfigured(reason)
    if not target.api_key_env:
        return "none"  # with an empty key LiteLLM would search the environment for one
    key = os.environ.get(target.api_key_env, "")
    if not key:
        raise Misconfigured(f"the environment variable {target.api_key_env} of this endpoint is not set")
    return key


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
