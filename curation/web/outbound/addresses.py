"""Which hosts Winnow may call: public ones, and private ones only if the operator allows them."""

import ipaddress
import os
import re
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from django.conf import settings

from curation.web.problems import Invalid

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Reach = Literal["public", "private", "never"]

# Services of clouds that hand out credentials to any caller on the machine.
METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
)
GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")
# Python's `is_global` differs between its versions, so everything that is not public is listed here.
NOT_PUBLIC = tuple(
    ipaddress.ip_network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        *("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
    )
)
# IPv6 prefixes with an IPv4 address in their last 32 bits: mapped, compatible, translated, NAT64.
IPV4_LAST = tuple(ipaddress.IPv6Network(text) for text in ("::ffff:0:0/96", "::/96", "::ffff:0:0:0/96", "64:ff9b::/96"))
NAT64_LOCAL = ipaddress.IPv6Network("64:ff9b:1::/48")
ISATAP = frozenset({0x00005EFE, 0x02005EFE})
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
ODD_IPV4 = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}\.?", re.IGNORECASE)
HOST = re.compile(r"[\w.-]+|[0-9a-f:.]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Purpose:
    """The purpose of a call to a host: the setting with the private hosts that are allowed, and the input's field."""

    setting: str
    field: str

    @property
    def allowed(self) -> bool | tuple[str, ...]:
        """True for all private hosts, or the names and networks that are allowed."""
        found: bool | tuple[str, ...] = getattr(settings, self.setting)
        return found if isinstance(found, bool) else tuple(found)


MODELS = Purpose("ALLOW_PRIVATE_MODEL_HOSTS", "api_base")
IMPORTS = Purpose("ALLOW_PRIVATE_IMPORT_HOSTS", "source")
WEBHOOKS = Purpose("ALLOW_PRIVATE_WEBHOOK_HOSTS", "url")
HUB = Purpose("ALLOW_PRIVATE_HUB_HOSTS", "endpoint")


class ForbiddenAddress(Invalid):
    """The host has an address that Winnow must not call."""

    code = "private_address"


class UnresolvableHost(Invalid):
    code = "unresolvable_host"


def refuse_private(url: str, purpose: Purpose) -> None:
    """Raise `Invalid` if a URL that a person enters leads to an address that Winnow must not call.

    This is for a clear message early. A name can have another address later, so connections are made with
    `curation.web.outbound.transport`, which connects to the addresses that it checked.
    """
    host = url_parts(url, purpose).hostname or ""
    try:
        checked_addresses(host, purpose)
    except UnresolvableHost:
        if purpose.allowed is not True:
            raise


def url_parts(url: str, purpose: Purpose) -> SplitResult:
    """Return the parts of an http(s) URL with a plain host, without user, query of secrets or tricks of spelling."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is not a number
    except ValueError:
        raise _refusal(purpose, "This is not a URL.") from None
    host = parts.hostname or ""
    if parts.scheme not in {"http", "https"} or not host or re.search(r"[\s\x00-\x1f\\]", url):
        raise _refusal(purpose, "The URL must look like https://host/path.")
    if parts.username is not None or parts.password is not None:
        raise _refusal(purpose, "The URL must not contain a user or password.", code="secret")
    if not HOST.fullmatch(host):
        raise _refusal(purpose, f"{host!r} is not the name or address of a host.")
    return parts


def checked_addresses(host: str, purpose: Purpose) -> tuple[str, ...]:
    """Resolve a host once and return its addresses, all of them checked.

    Raises `ForbiddenAddress` if one of them is not allowed, `UnresolvableHost` if there is none.
    """
    found = _lookup(host)
    if not found:
        raise _refusal(purpose, f"The host {host!r} cannot be resolved. Check its spelling.", UnresolvableHost)
    for address in found:
        check_address(address, host, purpose)
    return found


def check_address(text: str, host: str, purpose: Purpose) -> None:
    """Raise `ForbiddenAddress` unless Winnow may call this address of `host`."""
    address = ipaddress.ip_address(text.partition("%")[0])
    reach = reach_of(address)
    if reach == "never":
        raise _refusal(purpose, f"The host {host!r} resolves to {text}, which Winnow never calls.", ForbiddenAddress)
    if reach == "private" and not _is_allowed(address, host, purpose.allowed):
        raise _refusal(
            purpose,
            f"The host {host!r} resolves to the private address {text}. "
            f"The operator of this server can allow it with {purpose.setting}.",
            ForbiddenAddress,
        )


def reach_of(address: Address) -> Reach:
    """Link-local, multicast and metadata addresses are never called, in IPv6 too. Other special ones are private."""
    inside = list(_ipv4_inside(address)) if isinstance(address, ipaddress.IPv6Address) else []
    if any(found in METADATA or found.is_link_local or found.is_multicast for found in (address, *inside)):
        return "never"
    if inside or not address.is_global or any(address in network for network in NOT_PUBLIC):
        return "private"
    return "private" if address.version == 6 and address not in GLOBAL_IPV6 else "public"


def proxy_for(url: str) -> str:
    """The proxy that the environment names for a URL (`HTTPS_PROXY`, `NO_PROXY`, …), or ''."""
    if not any(map(os.environ.get, PROXY_VARIABLES)):
        return ""  # `getproxies` reads the whole environment, which takes longer than the rest of a call's checks
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all", "")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _lookup(host: str) -> tuple[str, ...]:
    """The addresses of a host, in the resolver's order. Numbers in any spelling (`127.1`, `0x7f.1`) are read here."""
    try:
        return (str(ipaddress.ip_address(host)),)
    except ValueError:
        pass
    if ODD_IPV4.fullmatch(host):
        try:
            return (socket.inet_ntoa(socket.inet_aton(host.rstrip("."))),)
        except OSError:
            return ()
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def _ipv4_inside(address: ipaddress.IPv6Address) -> Iterator[ipaddress.IPv4Address]:
    """Every IPv4 address that a gateway or the system may take this IPv6 address for."""
    number = int(address)
    last = ipaddress.IPv4Address(number & 0xFFFFFFFF)
    if any(address in network for network in IPV4_LAST) or (number >> 32) & 0xFFFFFFFF in ISATAP:
        yield last
    if address in NAT64_LOCAL:  # RFC 6052: the address is last, or around the bits 64 to 71
        yield last
        yield ipaddress.IPv4Address((number >> 48 & 0xFFFF0000) | (number >> 40 & 0xFFFF))
    if address.sixtofour:
        yield address.sixtofour
    if address.teredo:
        yield from address.teredo


def _is_allowed(address: Address, host: str, allowed: bool | tuple[str, ...]) -> bool:
    if isinstance(allowed, bool):
        return allowed
    names, networks = _entries(allowed)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return host.lower().rstrip(".") in names or any((mapped or address) in network for network in networks)


@lru_cache(maxsize=64)
def _entries(allowed: Sequence[str]) -> tuple[frozenset[str], tuple[Network, ...]]:
    names, networks = set(), []
    for entry in allowed:
        try:
            networks.append(ipaddress.ip_network(entry))
        except ValueError:
            names.add(entry.lower())
    return frozenset(names), tuple(networks)


def _refusal(purpose: Purpose, reason: str, kind: type[Invalid] = Invalid, *, code: str = "") -> Invalid:
    return kind.at(purpose.field, reason, code=code)
