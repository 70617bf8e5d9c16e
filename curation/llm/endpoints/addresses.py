"""Which hosts a model server may live on: public ones, and private ones only where the operator allows them."""

import ipaddress
import re
import socket
import time
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from curation.web.problems import FieldError, Invalid

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Instance metadata of clouds hands out credentials to whoever asks from the machine: never a model server.
METADATA = {ipaddress.ip_address(text) for text in ("169.254.169.254", "100.100.100.200", "fd00:ec2::254")}
NAT64 = ipaddress.ip_network("64:ff9b::/96")
# A name is looked up once in this time per process, so that a busy worker does not wait for DNS at every call.
LOOKUP_SECONDS = 5


def refuse_private(api_base: str) -> None:
    """Raises `Invalid` where a base URL leads to an address that Winnow must not call.

    All addresses of the host count, in every spelling (`127.1`, `0x7f.1`, `2130706433`, IPv4 inside IPv6). Link-local
    and metadata addresses are always refused; loopback and private ones unless `ALLOW_PRIVATE_MODEL_HOSTS`. Workers
    ask before each call, because a name may lead elsewhere tomorrow.
    """
    host = _parts(api_base).hostname or ""
    addresses = _addresses(host, lookup_window())
    if not addresses and not settings.ALLOW_PRIVATE_MODEL_HOSTS:
        raise _refusal(f"The host {host!r} cannot be found by name, so it cannot be checked.", code="unresolvable_host")
    for address in addresses:
        if address in METADATA or address.is_link_local or address.is_multicast:
            raise _refusal(f"The host {host!r} leads to {address}, which is never a model server.")
        if not address.is_global and not settings.ALLOW_PRIVATE_MODEL_HOSTS:
            raise _refusal(
                f"The host {host!r} leads to the private address {address}. "
                "The operator of this server allows such hosts by ALLOW_PRIVATE_MODEL_HOSTS=1."
            )


def lookup_window() -> int:
    """The number of the time window in which a host that was looked up is not looked up again."""
    return int(time.monotonic() / LOOKUP_SECONDS)


def _parts(api_base: str) -> SplitResult:
    try:
        parts = urlsplit(api_base)
        _ = parts.port  # raises where it is no number
    except ValueError:
        raise _refusal("This is not an address.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or re.search(r"[\s\x00-\x1f\\]", api_base):
        raise _refusal("The base URL must look like https://host/v1.")
    if parts.username or parts.password:
        raise _refusal("The base URL must not hold a user or password; name a key variable instead.", code="secret")
    if parts.query or parts.fragment:
        raise _refusal("The base URL must not hold a query or a fragment.")
    return parts


@lru_cache(maxsize=1024)
def _addresses(host: str, window: int) -> tuple[Address, ...]:
    """All addresses of a host, unwrapped; none where it has none. `window` lets an answer lapse."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple({_unwrapped(str(entry[4][0]).partition("%")[0]) for entry in found})


def _unwrapped(text: str) -> Address:
    """The IPv4 address that an IPv6 one stands for (mapped, 6to4, NAT64), else the address itself."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        if address in NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return address.ipv4_mapped or address.sixtofour or address
    return address


def _refusal(reason: str, *, code: str = "private_address") -> Invalid:
    return Invalid(reason, code=code, errors=[FieldError("api_base", reason)])
