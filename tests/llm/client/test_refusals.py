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


def error(message: str, **codes: str | int) -> dict[str, Any]:
    return {"error": {"message": message, **codes}}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"code": "Arrearage", "message": "Please make sure your account is in good standing."}),
        (400, {"code": "PostpaidBillOverdue", "message": "Access denied."}),
        (403, {"code": "CommodityNotPurchased", "message": "Access denied."}),
        (403, {"code": 403, "reason": "NOT_ENOUGH_BALANCE", "message": "forbidden"}),
        (403, error("Forbidden", code="InsufficientBalance")),
        (403, error("Forbidden", type="credit_balance_too_low")),
        (403, error("Ask your admin", type="billing_error")),
        (403, error("The account is in arrears", code="account_overdue")),
        (429, error("Your account has exhausted its free trial quota for the model.", code="QuotaExceeded")),
        (429, error("The set limit is reached, and the model service has been paused.", code="SetLimitExceeded")),
        (200, {"Response": {"Error": {"Code": "X", "Message": "资源包余量已用尽，请购买资源包"}}}),
        (200, {"Response": {"Error": {"Code": "ResourceUnavailable.InArrears", "Message": "stop"}}}),
        (200, {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}),
        (200, error("stop", code=402)),
        (403, {"success": False, "errors": [{"code": 2021, "message": "Insufficient credits"}]}),
        (429, {"errors": [{"code": 4006, "message": "You have used up your daily free allocation of 10,000 neurons"}]}),
        (412, {"status": "failure", "message": "Usage limits exhausted for this key"}),
        (403, error("The account is suspended due to failure to pay past invoices")),
        (400, error("Your organization has reached its monthly spend cap", code="blocked_api_access")),
        (401, {"detail": "Inactive subscription or usage limit reached"}),
        (403, {"detail": {"error": "inference prohibited, please enter a payment method in your dashboard"}}),
        (403, {"message": "Out of call volume quota. It will be replenished in 1.12:00:00."}),
        (403, error("The billing account of the project is disabled in state delinquent")),
        (403, error("预扣费额度失败, 用户剩余额度: $0.10")),
        (403, {"errors": [{"code": "token_quota_reached", "message": "The monthly token quota has been reached"}]}),
        (403, error("Your payment is past due")),
        (403, error("Your free trial has ended. Add a payment method to continue.")),
        (403, {"message": "Remaining credits: 0"}),
    ],
)
def test_an_empty_account_is_told_by_its_words_and_codes(status: int, body: Any) -> None:
    assert refusal_of(status, httpx.Headers(), json.dumps(body).encode()).is_out_of_quota


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error("The thinking budget is exceeded: 40000 is over the maximum of 32768")),
        (400, error("The prompt contains a credit card number, which exceeded the policy")),
        (400, error("Invalid value: 'budget' is over the maximum")),
        (400, error("tool payment failed validation: 'amount' is required")),
        (403, error("Insufficient permissions to access the billing API")),
        (403, error("This model is not part of your subscription")),
        (404, error("The model `credit-7b` does not exist or has ended")),
        (429, error("You have reached the concurrency limit of your subscription")),
        (429, error("Rate limit exceeded: the free tier allows 3 requests per minute")),
        (429, error("Rate limit exceeded, add credits to increase your limit. Or top up.")),
        (429, error("Usage limit reached for 5 hours. Your limit will reset at 10:00:00", code="1308")),
        (429, error("Tokens per minute limit exceeded", param="quota", code="token_quota_exceeded")),
        (429, {"code": "Throttling.AllocationQuota", "message": "Allocated quota exceeded, please ask for more."}),
        (429, error("Resource has been exhausted (e.g. check quota).", status="RESOURCE_EXHAUSTED")),
        (507, error("disk quota exceeded, budget exhausted")),
    ],
)
def test_other_limits_are_no_empty_account(status: int, body: Any) -> None:
    assert not refusal_of(status, httpx.Headers(), json.dumps(body).encode()).is_out_of_quota


@pytest.mark.parametrize("body", [b"%s", b'{"detail": "%s"}'])
def test_a_traceback_is_its_last_line(body: bytes) -> None:
    traceback = b"Traceback (most recent call last):\n  File x.py, line 1\nValueError: bad input"
    given = body % (traceback if body == b"%s" else traceback.replace(b"\n", b"\\n"))
    assert refusal_of(500, httpx.Headers({}), given).words == "ValueError: bad input"
