"""A server's refusal: its words, how long to wait, and whether its quota is spent."""

import html
import json
import math
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from itertools import islice

import httpx
from pydantic import JsonValue

LONGEST_WAIT = 600.0
# OpenAI's codes and those of gateways. Without one, the words must be about money: Google calls a limit per minute a
# quota too.
QUOTA_CODES = frozenset(
    {
        *("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "budget_exceeded"),
        *("insufficient_balance", "insufficient_credits", "insufficient_funds", "quota_exhausted", "arrearage"),
        *("insufficientquota", "insufficient_user_quota", "pre_consume_token_quota_failed", "not_enough_balance"),
        *("exceeded_current_quota_error", "allocationquota.freetieronly", "accountoverdueerror", "billing_disabled"),
        *("credit_limit_exceeded", "credits_exhausted", "payment_required"),
        *("1008", "1113"),  # MiniMax's and Zhipu's
    }
)
MONEY = r"(?:balance|credits?|funds|budget|subscription|spend(?:ing)? limit|free (?:tier|quota)|api usage limits?)"
SPENT = r"(?:insufficient|exhausted|exceeded|depleted|overdue|negative|in arrears|expired|hit)"
QUOTA_WORDS = re.compile(
    rf"\b(?:{SPENT}|not enough|(?:out|short) of|over|used (?:up|all)|reached|requires more|suspended|no|any|0|zero)\b"
    rf"[^.!]{{0,40}}\b{MONEY}\b"
    rf"|\b{MONEY}\b[^.!]{{0,40}}\b(?:{SPENT}|too low|used up|reached)\b|\baccount is suspended\b|insufficient\W+quota"
    r"|\brequires billing\b|\bbilling (?:is |has been )?(?:disabled|suspended|not (?:enabled|active))\b|\bunpaid\b"
    r"|\bkey limit exceeded\b|\bout of tokens\b"
    r"|\b(?:recharge|top.?up) (?:your|the) (?:account|balance|wallet)\b|\bapi calls ?(?:/|per|a) ?month\b"
    r"|\bper.month (?:request|token) limit\b|余额不足|欠费|额度(?:已)?(?:不足|用尽|用完|耗尽)",
    re.IGNORECASE,
)
# What an error costs is no lack of it.
UNCHARGED = re.compile(
    r"\b(?:no|0|zero) (?:\w+ ){0,2}(?:credits?|balance|funds) (?:is|are|was|were|has been|have been|will be)"
    r" (?:charged|billed|deducted|used|consumed)\b|\bnot (?:be )?(?:charged|billed) (?:for )?any credits?\b",
    re.IGNORECASE,
)
OK, PAYMENT_REQUIRED = 200, 402
MARKUP = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", re.DOTALL | re.IGNORECASE)
MOST_TEXT, LONGEST_TEXT, MOST_PARTS = 5_000, 400, 1_000
# 34s, 1m30s, 350ms, 26 seconds: Google's delays, resets of limits, and words.
DURATION = re.compile(
    r"(?:(\d+) ?h(?:ours?)?)? ?(?:(\d+) ?m(?:in(?:ute)?s?)?(?!s))?"
    r" ?(?:(\d+(?:\.\d+)?) ?s(?:ec(?:ond)?s?)?)? ?(?:(\d+(?:\.\d+)?) ?ms)?"
)
UNITS = (3600.0, 60.0, 1.0, 0.001)
# 00:00:20, and the numbers of several headers.
CLOCK = re.compile(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)")
NUMBERS = re.compile(r"\d+(?:\.\d+)?(?:\s*,\s*\d+(?:\.\d+)?)+")
SAID = re.compile(
    r"\b(?:try again|retry|wait|resets?|available)\b[^\d.]{0,20}"
    r"(\d[\d.hms ]{0,20}?(?:ms|[hms]|sec(?:ond)?s?|min(?:ute)?s?|hours?))\b",
    re.IGNORECASE,
)
WAITS = {"retry-after-ms": 0.001, "x-ms-retry-after-ms": 0.001, "retry-after": 1.0}
BODY_WAITS = frozenset({"retrydelay", "retry_after", "retryafter", "retry_after_seconds", "retry-after"})
# When a limit is full again. It is the one that refused if nothing of it remains.
RESET = re.compile(r"(?:x-|anthropic-)?ratelimit-(?:[\w-]+-)?reset(?:-[\w-]+)?")
RESET_IN = re.compile(r"\b(?:remaining|r)=0\b.*\b(?:reset|t)=(\d+)")
TOO_MANY = 429
# Larger numbers are no seconds to wait, but a time since 1970 in seconds, and in milliseconds.
EPOCH, EPOCH_MS = 1e8, 1e11
TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True, slots=True)
class ModelRefusal:
    """A response that is no answer. `words` are empty if the body has none that people can read."""

    words: str
    retry_after: float | None
    is_out_of_quota: bool


def refusal_of(status: int, headers: httpx.Headers, content: bytes) -> ModelRefusal:
    """A limit that ends by itself is no lack of credit, so words about money count only without a time to wait."""
    try:
        body: JsonValue = json.loads(content)
    except (ValueError, RecursionError):
        words, codes, texts = _plain_text(content), set[str](), list[tuple[str, str]]()
        words = f"the answer is not JSON: {words}" if status == OK else words
    else:
        words, codes = _read(body)
        texts = [(name.lower(), text) for name, text in _texts(body)]
    stated = _wait(_stated(headers, texts, words))
    wait = _wait(_resets(headers, texts)) if stated is None and status == TOO_MANY else stated
    is_code = status == PAYMENT_REQUIRED or not QUOTA_CODES.isdisjoint(codes)
    is_about_money = stated is None and status < 500 and QUOTA_WORDS.search(UNCHARGED.sub("", words)) is not None
    return ModelRefusal(words, wait, is_code or is_about_money)


def _read(body: JsonValue) -> tuple[str, set[str]]:
    """The words of a body, and the codes that it gives beside them. Without a field of the usual names, all sentences
    in it are its words."""
    one = body[0] if isinstance(body, list) and body else body  # Google's
    error = (one.get("error") or one) if isinstance(one, dict) else one
    if not isinstance(error, dict):
        return (error if isinstance(error, str) else ""), set()
    codes = {str(error.get(name)).lower() for name in ("code", "type", "status") if error.get(name)}
    words = next((text for name in ("message", "detail", "msg", "error") if (text := _text(error.get(name)))), "")
    if TRACEBACK in words:
        words = words.strip().splitlines()[-1]
    words = words or "; ".join(text.strip() for _, text in _texts(body) if " " in text.strip())[:LONGEST_TEXT]
    metadata = error.get("metadata")
    behind = _text(metadata.get("raw")) if isinstance(metadata, dict) else ""  # the upstream error of a gateway
    return ": ".join(part for part in (words, behind) if part), codes


def _text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):  # FastAPI's errors of fields
        return "; ".join(_text(one.get("msg")) for one in value if isinstance(one, dict) and one.get("msg"))
    return ""


def _texts(body: JsonValue) -> Iterator[tuple[str, str]]:
    """Yield the texts and numbers in a small document in their order, each with the name of its field. Of a large one,
    such as many embeddings, only the beginning is read."""
    waiting: list[tuple[str, JsonValue]] = [("", body)]
    for _ in range(MOST_PARTS):
        if not waiting:
            return
        name, value = waiting.pop()
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            yield name, str(value)
        elif isinstance(value, dict):
            waiting += [*islice(value.items(), MOST_PARTS)][::-1]
        elif isinstance(value, list):
            waiting += [(name, inner) for inner in value[:MOST_PARTS][::-1]]


def _plain_text(content: bytes) -> str:
    """The text of a body that is no JSON, such as the page of a gateway."""
    text = content[:MOST_TEXT].decode(errors="replace")
    if text.startswith(TRACEBACK):
        text = content.decode(errors="replace").strip().splitlines()[-1]
    return " ".join(html.unescape(MARKUP.sub(" ", text) if text.lstrip().startswith("<") else text).split())[
        :LONGEST_TEXT
    ]


def _stated(headers: httpx.Headers, texts: Sequence[tuple[str, str]], words: str) -> Iterator[tuple[str, float]]:
    """Yield what says how long to wait, the plainest first, each with its unit in seconds."""
    yield from ((headers.get(name, ""), unit) for name, unit in WAITS.items())
    yield from ((text, 1.0) for name, text in texts if name in BODY_WAITS)
    yield from ((found[1], 1.0) for found in SAID.finditer(words[:MOST_TEXT]))


def _resets(headers: httpx.Headers, texts: Sequence[tuple[str, str]]) -> Iterator[tuple[str, float]]:
    """Yield when limits that are used up are full again."""
    for name, text in (*headers.items(), *texts):
        if RESET.fullmatch(name) and headers.get(name.replace("reset", "remaining"), "0").strip() == "0":
            yield text, 1.0
    yield from ((found[1], 1.0) for found in RESET_IN.finditer(headers.get("ratelimit", "")))


def _wait(given: Iterable[tuple[str, float]]) -> float | None:
    """Return the seconds to wait: milliseconds, seconds, a duration or a date."""
    for text, unit in given:
        seconds = _seconds(text.strip(), unit)
        if seconds is not None and math.isfinite(seconds):
            return min(LONGEST_WAIT, max(0.0, seconds))
    return None


def _seconds(text: str, unit: float) -> float | None:
    if NUMBERS.fullmatch(text):
        return max(float(number) for number in text.split(",")) * unit
    if clock := CLOCK.fullmatch(text):
        return sum(float(part) * size for part, size in zip(clock.groups(), UNITS[:3], strict=True))
    with suppress(ValueError):
        number = float(text)
        since = number / 1000 if number > EPOCH_MS else number
        return since - time.time() if number > EPOCH else number * unit
    short = text.removeprefix("PT").lower()
    duration = DURATION.fullmatch(short)
    if short and duration:
        return sum(float(part) * size for part, size in zip(duration.groups(), UNITS, strict=True) if part)
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        with suppress(ValueError):
            return read(text).timestamp() - time.time()
    return None
