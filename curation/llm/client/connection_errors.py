"""Why a request did not reach its endpoint, or why its answer was lost, in words."""

import errno
import os
import re
import ssl
from collections.abc import Iterator

import aiohttp
import httpx

from curation.llm.client.streams import BrokenAnswer

# aiohttp raises these before it sends the first byte of a request, and httpx these.
NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)
NOT_SENT_BY_HTTPX = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
REASONS = {
    errno.ECONNREFUSED: "{} refused the connection",
    errno.ECONNRESET: "{} closed the connection while it was opened",
    errno.ETIMEDOUT: "{} did not accept a connection in time",
    errno.EHOSTUNREACH: "there is no route to {}",
    errno.ENETUNREACH: "there is no route to {}",
}
NUMBER = re.compile(r"\[Errno (\d+)\]")


def why_not_sent(error: BaseException) -> str:
    """Return why the request was not sent, or '' if it or a part of it may have reached the endpoint."""
    found = [cause for cause in causes_of(error) if isinstance(cause, aiohttp.ClientError)]
    if found:
        return _words(found[0]) if all(isinstance(cause, NOT_SENT) for cause in found) else ""
    for cause in causes_of(error):
        if isinstance(cause, NOT_SENT_BY_HTTPX):
            return f"no connection to the endpoint: {cause}"
    return ""


def why_lost(error: BaseException) -> str:
    """Return why a request that was sent has no answer, or '' if the connection is not the reason."""
    for cause in causes_of(error):
        if isinstance(cause, BrokenAnswer):
            return str(cause)
        if isinstance(cause, aiohttp.ServerDisconnectedError):
            return "the endpoint closed the connection before it answered"
        if isinstance(cause, aiohttp.ClientPayloadError):
            return "the answer broke off"
        if isinstance(cause, aiohttp.ClientOSError):
            return f"the connection broke before the answer: {_system_words(cause) or 'it was lost'}"
    return ""


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes: the errors it was raised from, and those handled at the time."""
    waiting, seen = [error], set[int]()
    while waiting:
        cause = waiting.pop()
        if id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            waiting += [one for one in (cause.__context__, cause.__cause__) if one is not None]


def _words(error: aiohttp.ClientError) -> str:
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy refused to connect to the endpoint: {error.status} {error.message}"
    if not isinstance(error, aiohttp.ClientConnectorError):
        return "no connection to the endpoint in time"
    place = f"{error.host}:{error.port}"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        place = f"the proxy {place}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the name {error.host} cannot be resolved"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        problem = getattr(error.certificate_error, "verify_message", "") or "it does not belong to this host"
        return f"the TLS certificate of {place} is not valid: {problem}"
    if isinstance(error.os_error, ssl.SSLError):
        reason = (error.os_error.reason or "the handshake failed").replace("_", " ").lower()
        return f"no TLS connection to {place}: {reason}"
    number = _number(error)
    known = REASONS.get(number)
    return known.format(place) if known else f"no connection to {place}{f': {os.strerror(number)}' if number else ''}"


def _system_words(error: OSError) -> str:
    number = _number(error)
    return os.strerror(number) if number else ""


def _number(error: OSError) -> int:
    """Return the system's number of the error. Of several addresses that failed, the first one's is in the text."""
    found = NUMBER.search(str(error))
    return error.errno or (int(found[1]) if found else 0)
