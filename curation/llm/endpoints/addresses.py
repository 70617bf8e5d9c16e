"""Which hosts Winnow may call: public ones, and private ones only if the operator allows them."""

import ipaddress
import re
import socket
import time
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from curation.web.problems import FieldError, Invalid

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Cloud metadata services hand out credentials to any caller on the machine.
METADATA = {ipaddress.ip_address(text) for text in ("169.254.169.254", "100.100.100.200", "fd00:ec2::254")}
NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Each process looks up a name once in this time, so that a busy worker does not wait for DNS with every call.
LOOKUP_SECONDS = 5


def refuse_private(api_base: str) -> None:
    """Raise `Invalid` if a base URL leads to an address that Winnow must not call.

    All addresses of the host count, in every spelling (`127.1`, `0x7f.1`, `2130706433`, IPv4 inside IPv6). Link-local
    and metadata addresses are always refused, loopback and private ones unless `ALLOW_PRIVATE_MODEL_HOSTS` is set.
    Workers check before each call, because a name can resolve to another address later.
    """
    host = _parts(api_base).hostname or ""
    addresses = _addresses(host, lookup_window())
    if not addresses and not settings.ALLOW_PRIVATE_MODEL_HOSTS:
        raise _refusal(f"The host {host!r} cannot be resolved. Check its spelling.", code="unresolvable_host")
    for address in addresses:
        if address in METADATA or address.is_link_local or address.is_multicast:
            raise _refusal(f"The host {host!r} resolves to {address}, which Winnow never calls.")
        if not address.is_global and not settings.ALLOW_PRIVATE_MODEL_HOSTS:
            raise _refusal(
                f"The host {host!r} resolves to the private address {address}. "
                "The operator of this server can allow such hosts with ALLOW_PRIVATE_MODEL_HOSTS=1."
            )


def lookup_window() -> int:
    """The number of the current time window; within it a host is looked up once."""
    return int(time.monotonic() / LOOKUP_SECONDS)


def _parts(api_base: str) -> SplitResult:
    try:
        parts = urlsplit(api_base)
        _ = parts.port  # raises if it is not a number
    except ValueError:
        raise _refusal("This is not a URL.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or re.search(r"[\s\x00-\x1f\\]", api_base):
        raise _refusal("The base URL must look like https://host/v1.")
    if parts.username or parts.password:
        raise _refusal("The base URL must not contain a user or password. Use a key variable instead.", code="secret")
    if parts.query or parts.fragment:
        raise _refusal("The base URL must not contain a query or a fragment.")
    return parts


@lru_cache(maxsize=1024)
def _addresses(host: str, window: int) -> tuple[Address, ...]:
    """All addresses of a host, possibly none. A new `window` makes the cached result expire."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple({_as_ipv4(str(entry[4][0]).partition("%")[0]) for entry in found})


def _as_ipv4(text: str) -> Address:
    """The IPv4 address inside an IPv6 one (mapped, 6to4, NAT64), else the address itself."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        if address in NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return address.ipv4_mapped or address.sixtofour or address
    return address


def _refusal(reason: str, *, code: str = "private_address") -> Invalid:
    return Invalid(reason, code=code, errors=[FieldError("api_base", reason)])
