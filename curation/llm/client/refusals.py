"""A server's refusal: its words, how long to wait, and whether its quota is spent."""

import json
import math
import re
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpx
from pydantic import JsonValue

LONGEST_WAIT = 600.0
# OpenAI's codes and those of gateways. Without one, the words must be about money: Google calls a limit per minute a
# quota too.
QUOTA_CODES = frozenset(
    {
        *("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "budget_exceeded"),
        *("insufficient_balance", "insufficient_credits", "insufficient_funds", "quota_exhausted", "arrearage"),
    }
)
QUOTA_WORDS = re.compile(
    r"insufficient\s+(?:account\s+)?(?:balance|credits?|funds|quota)|credit balance is too low|out of credits"
    r"|(?:budget|spend(?:ing)? limit) has been exceeded|requires more credits",
    re.IGNORECASE,
)
PAYMENT_REQUIRED = 402


@dataclass(frozen=True, slots=True)
class Refusal:
    """A response with an error status. `words` are empty if the body has none that people can read."""

    words: str
    retry_after: float | None
    is_out_of_quota: bool


def refusal_of(status: int, headers: httpx.Headers, content: bytes) -> Refusal:
    words, codes = _read(content)
    is_code = status == PAYMENT_REQUIRED or not QUOTA_CODES.isdisjoint(codes)
    is_out_of_quota = is_code or (status in (400, 403, 429) and QUOTA_WORDS.search(words) is not None)
    return Refusal(words, _retry_after(headers), is_out_of_quota)


def _read(content: bytes) -> tuple[str, set[str]]:
    """The words of a body, and the codes that it gives beside them."""
    try:
        body: JsonValue = json.loads(content)
    except (ValueError, RecursionError):
        return "", set()
    body = body[0] if isinstance(body, list) and body else body  # Google's
    error = (body.get("error") or body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return (error if isinstance(error, str) else ""), set()
    codes = {str(error.get(name)).lower() for name in ("code", "type", "status") if error.get(name)}
    words = next((text for name in ("message", "detail", "msg", "error") if (text := _text(error.get(name)))), "")
    metadata = error.get("metadata")
    behind = _text(metadata.get("raw")) if isinstance(metadata, dict) else ""  # the upstream error of a gateway
    return ": ".join(part for part in (words, behind) if part), codes


def _text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):  # FastAPI's errors of fields
        return "; ".join(_text(one.get("msg")) for one in value if isinstance(one, dict) and one.get("msg"))
    return ""


def _retry_after(headers: httpx.Headers) -> float | None:
    """Return the seconds to wait, given as milliseconds, as seconds or as a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        given = headers.get(name, "").strip()
        try:
            seconds = float(given) * unit
        except ValueError:
            try:
                seconds = parsedate_to_datetime(given).timestamp() - time.time()
            except ValueError:
                continue
        if math.isfinite(seconds):
            return min(LONGEST_WAIT, max(0.0, seconds))
    return None
