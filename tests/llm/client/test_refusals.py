"""What a refusal says: how long to wait in each spelling, whether the quota is spent, and its words."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from curation.llm.client.refusals import refusal_of

LIMITED = {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}
# Made when a test runs, not when it is collected.
IN_TWENTY: dict[str, Callable[[], str]] = {
    "a date of ISO 8601": lambda: (datetime.now(UTC) + timedelta(seconds=20)).strftime("%Y-%m-%dT%H:%M:%SZ"),
    "seconds since 1970": lambda: str(time.time() + 20),
    "milliseconds since 1970": lambda: str(int((time.time() + 20) * 1000)),
}


def waits(headers: dict[str, str], body: Any = LIMITED, status: int = 429) -> float | None:
    return refusal_of(status, httpx.Headers(headers), json.dumps(body).encode()).retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ms-retry-after-ms": "2500"}, 2.5),
        ({"retry-after": "7 seconds"}, 7),
        ({"retry-after": "1m30s"}, 90),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}, 360),
        ({"x-ratelimit-reset-tokens": "17ms", "x-ratelimit-remaining-tokens": "0"}, 0.017),
        (
            {
                **{"x-ratelimit-reset-requests": "1h", "x-ratelimit-remaining-requests": "9"},
                **{"x-ratelimit-reset-tokens": "4s", "x-ratelimit-remaining-tokens": "0"},
            },
            4,
        ),
        ({"x-ratelimit-reset-requests": "1h", "x-ratelimit-remaining-requests": "9"}, None),
        ({"ratelimit-reset": "20"}, 20),
        ({"ratelimit": "limit=10, remaining=0, reset=20"}, 20),
        ({"ratelimit": "limit=10, remaining=3, reset=20"}, None),
        ({"ratelimit": '"default";r=0;t=20'}, 20),
        ({"ratelimit": '"default";r=3;t=20'}, None),
        ({"retry-after": "PT30S"}, 30),
        ({"retry-after": "00:00:20"}, 20),
        ({"retry-after": "01:02:03.5"}, 600),
        ({"retry-after": "5, 7"}, 7),
        ({"retry-after": "1,5"}, 5),
        ({"retry-after": "soon, later"}, None),
    ],
)
def test_headers_say_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert waits(headers) == seconds


@pytest.mark.parametrize("name", ["retry-after", "x-ratelimit-reset", "anthropic-ratelimit-requests-reset"])
@pytest.mark.parametrize("spelling", IN_TWENTY)
def test_headers_say_until_when_to_wait(name: str, spelling: str) -> None:
    seconds = waits({name: IN_TWENTY[spelling]()})
    assert seconds is not None and 5 < seconds <= 20


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"error": {"message": "Limit 30000, Used 29000. Please try again in 7.66s. Visit the page"}}, 7.66),
        ({"error": {"message": "Please try again in 1m12.5s."}}, 72.5),
        ({"error": {"message": "Please try again in 120ms."}}, 0.12),
        ({"error": {"code": "429", "message": "Please retry after 26 seconds."}}, 26),
        ({"error": {"message": "slow", "retry_after": 12}}, 12),
        ({"message": "slow", "retry_after_seconds": 12.5}, 12.5),
        ({"error": {"message": "Try version 3 of it"}}, None),
    ],
)
def test_the_body_says_how_long_to_wait(body: Any, seconds: float | None) -> None:
    assert waits({}, body) == seconds


def test_resets_are_those_of_a_limit_only() -> None:
    assert waits({"x-ratelimit-reset": "20"}, status=500) is None


@pytest.mark.parametrize(
    ("status", "message", "is_spent"),
    [
        (403, "Your account has been deactivated due to unpaid invoices", True),
        (403, "Subscription expired", True),
        (429, "Monthly spend limit of $100 hit", True),
        (401, "Organization billing suspended", True),
        (400, "Trial credits have expired", True),
        (429, "You have run out of tokens for this month", True),
        (429, "Rate limit: too many concurrent requests", False),
        (429, "The subscription allows 5 requests a minute. Please try again in 12s", False),
        (400, "The context length is exceeded. No credit is charged for this request.", False),
        (400, "No credits were charged because the maximum context length is exceeded", False),
        (400, "The prompt is too long; you will not be charged any credits", False),
        (400, "max_tokens is too large: the budget of thinking must be less", False),
    ],
)
def test_words_tell_whether_the_quota_is_spent(status: int, message: str, is_spent: bool) -> None:
    body = json.dumps({"error": {"message": message}}).encode()
    assert refusal_of(status, httpx.Headers({"ratelimit-reset": "20"}), body).is_out_of_quota is is_spent


@pytest.mark.parametrize("body", [b"%s", b'{"detail": "%s"}'])
def test_a_traceback_is_its_last_line(body: bytes) -> None:
    traceback = b"Traceback (most recent call last):\n  File x.py, line 1\nValueError: bad input"
    given = body % (traceback if body == b"%s" else traceback.replace(b"\n", b"\\n"))
    assert refusal_of(500, httpx.Headers({}), given).words == "ValueError: bad input"
