"""How the bytes of an answer are read, whatever their form or content type: without a server."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from curation.llm.client.ends import KNOWN
from curation.llm.client.read import read_answer
from curation.llm.client.refusals import refusal_of
from curation.llm.client.streams import BrokenAnswer, RefusedAnswer, StreamProgress, progress_of_call

JSON, STREAM = "application/json", "text/event-stream"
PAGE = "<!DOCTYPE html><html><head><title>Bad gateway</title><style>b {}</style></head><body><h1>Error 502</h1></body>"


def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason, **more}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def whole(reason: str, content: object = "ls", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    return {"choices": [{"index": 0, "finish_reason": reason, "message": message}], **more}


GOOD = chunk({"content": "l"}) + chunk({"content": "s"}) + chunk({}, "stop") + b"data: [DONE]\n\n"


def read(content: bytes | dict[str, Any], kind: str = JSON, *, status: int = 200) -> tuple[int, Any, StreamProgress]:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()

    async def answer() -> tuple[int, Any, StreamProgress]:
        progress = StreamProgress()
        progress_of_call.set(progress)
        request = httpx.Request("POST", "http://127.0.0.1/v1")
        found = await read_answer(httpx.Response(status, headers={"content-type": kind}, content=body, request=request))
        return found.status_code, json.loads(found.content), progress

    return asyncio.run(answer())


@pytest.mark.parametrize("reason", ["</s>", "\nUser:", 128009])
def test_the_stop_string_of_vllm_is_no_reason(reason: object) -> None:
    document = whole("stop")
    document["choices"][0]["stop_reason"] = reason
    assert read(document)[2].end == "stop"


@pytest.mark.parametrize(("native", "end"), [("MAX_TOKENS", "length"), ("SAFETY", "content_filter"), ("STOP", "stop")])
def test_the_end_that_a_gateway_calls_stop_is_the_providers(native: str, end: str) -> None:
    document = whole("stop")
    document["choices"][0]["native_finish_reason"] = native
    assert read(document)[2].end == end


def test_an_answer_of_which_a_filter_took_something_out_is_none() -> None:
    results: dict[str, Any] = {"content_filter_results": {"hate": {"filtered": False}, "violence": {"filtered": True}}}
    document = whole("stop")
    document["choices"][0] |= results
    for given, kind in ((document, JSON), (chunk({"content": "l"}, **results) + chunk({}, "stop"), STREAM)):
        with pytest.raises(RefusedAnswer, match="the answer was filtered: violence"):
            read(given, kind)


@pytest.mark.parametrize(
    "more",
    [
        {"errors": [{"message": "the upstream died"}]},
        {"base_resp": {"status_code": 1027, "status_msg": "output is sensitive"}},
    ],
)
def test_a_failure_beside_a_whole_choice_is_no_answer(more: dict[str, Any]) -> None:
    with pytest.raises(RefusedAnswer):
        read(whole("stop", **more))


def test_a_failure_in_the_message_is_no_answer() -> None:
    document = whole("stop")
    document["choices"][0]["message"]["error"] = {"message": "the upstream died"}
    with pytest.raises(RefusedAnswer, match="the upstream died"):
        read(document)


def text_of(document: Any) -> str:
    return str(document["choices"][0]["message"]["content"])


@pytest.mark.parametrize("write", [str.lower, str.upper, str.title, lambda reason: f" {reason}"])
@pytest.mark.parametrize("reason", KNOWN)
def test_a_known_end_means_the_same_in_any_letters(reason: str, write: Any) -> None:
    assert read(whole(write(reason)))[2].end == KNOWN[reason]
    assert read(chunk({"content": "ls"}, write(reason)), STREAM)[2].end == KNOWN[reason]


@pytest.mark.parametrize("kind", [STREAM, JSON, "text/plain", ""])
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n\n", b": OPENROUTER PROCESSING\n\n"])
def test_the_first_characters_say_what_an_answer_is(kind: str, before: bytes) -> None:
    assert text_of(read(before + GOOD, kind)[1]) == "ls"
    if not before.startswith(b":"):
        assert text_of(read(before.strip(b"\xef\xbb\xbf") + json.dumps(whole("stop")).encode(), kind)[1]) == "ls"


def test_a_line_that_is_no_part_of_a_stream_is_not_skipped() -> None:
    for line in (b'{"error": {"message": "out of memory"}}\n\n', b"Internal Server Error\n"):
        with pytest.raises(BrokenAnswer, match=r"out of memory|Internal"):
            read(chunk({"content": "l"}) + line + chunk({}, "stop"), STREAM)
    assert text_of(read(b"id: 1\nretry: 3\nevent: message\nx-more: y\n" + GOOD, STREAM)[1]) == "ls"


def test_a_gateways_own_reason_counts_in_a_stream_too() -> None:
    with pytest.raises(BrokenAnswer, match="MALFORMED_FUNCTION_CALL"):
        read(chunk({"content": "l"}) + chunk({}, "stop", native_finish_reason="MALFORMED_FUNCTION_CALL"), STREAM)


@pytest.mark.parametrize(
    ("error", "status", "spent"),
    [
        ({"message": "slow down", "code": "429"}, 429, False),
        ({"message": "You exceeded your quota", "code": "insufficient_quota"}, 500, True),
        ({"message": "This request requires more credits", "code": 402}, 402, True),
        ({"message": "too long", "code": 400, "object": "error"}, 400, False),
    ],
)
def test_an_error_with_the_status_200_is_read_as_one_with_its_own(
    error: dict[str, Any], status: int, spent: bool
) -> None:
    document = error if "object" in error else {"error": error}
    with pytest.raises(RefusedAnswer, match=str(error["message"])) as refused:
        read(document)
    assert refused.value.status == status
    assert refusal_of(status, httpx.Headers(), json.dumps(document).encode()).is_out_of_quota is spent
    given, body, progress = read(b"data: " + json.dumps(document).encode() + b"\n\n", STREAM)
    assert given == status and body["error"]["message"] == error["message"]
    assert progress.refusal is not None and progress.refusal.is_out_of_quota is spent


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"success": false, "message": "the model is gone"}', "the model is gone"),
        (b'{"choices": null, "base_resp": {"status_msg": "insufficient balance"}}', "insufficient balance"),
        (b'{"errors": [{"message": "no such model"}], "status": "error"}', "no such model"),
        (PAGE.encode(), "the answer is not JSON: Bad gateway Error 502"),
    ],
)
def test_the_words_of_what_is_no_answer_are_kept(body: bytes, words: str) -> None:
    assert refusal_of(200, httpx.Headers(), body).words == words


def test_a_gateways_page_is_shown_as_its_text() -> None:
    assert refusal_of(502, httpx.Headers(), PAGE.encode()).words == "Bad gateway Error 502"
    xml = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your rate &amp; wait</Message></Error>"
    assert refusal_of(503, httpx.Headers(), xml).words == "SlowDown Reduce your rate & wait"
    assert refusal_of(502, httpx.Headers(), b"upstream connect error: a < b").words == "upstream connect error: a < b"


@pytest.mark.parametrize(
    ("given", "seconds"), [("7s", 7), ("1m30s", 90), ("500ms", 0.5), ("1h", 600), ("7", 7), ("soon", None), ("", None)]
)
def test_a_wait_may_be_a_duration(given: str, seconds: float | None) -> None:
    assert refusal_of(429, httpx.Headers({"retry-after": given}), b"").retry_after == seconds


def test_a_wait_in_the_body_is_read_and_is_no_lack_of_credit() -> None:
    """Google calls a limit per minute a quota."""
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]
    error = {"code": 429, "message": "Your spending limit is reached", "details": details}
    found = refusal_of(429, httpx.Headers(), json.dumps([{"error": error}]).encode())
    assert (found.retry_after, found.is_out_of_quota) == (34.0, False)


@pytest.mark.parametrize(
    "error",
    [
        {"message": "overdue", "code": "AccountOverdueError"},
        {"message": "free quota", "code": "AllocationQuota.FreeTierOnly"},
        {"message": "user quota is not enough", "type": "new_api_error", "code": "insufficient_user_quota"},
        {"message": "check your plan", "type": "exceeded_current_quota_error"},
        {"message": "please recharge", "code": "1113"},
    ],
)
def test_the_codes_of_empty_accounts_are_known(error: dict[str, str]) -> None:
    assert refusal_of(429, httpx.Headers(), json.dumps({"error": error}).encode()).is_out_of_quota


@pytest.mark.parametrize(
    ("words", "spent"),
    [
        ("Your account is suspended, please check your plan and billing details", True),
        ("Your team has either used all available credits or reached its monthly spending limit.", True),
        ("Sorry, your account balance is insufficient", True),
        ("Insufficient balance or no resource package. Please recharge.", True),
        ("You have exceeded your monthly included credits", True),
        ("You have depleted your monthly included credits. Subscribe to PRO to get 20x more.", True),
        ("Your prepayment credits are depleted. Manage your project and billing.", True),
        ("Your newly created team doesn't have any credits yet.", True),
        ("The request failed because your account has an overdue balance.", True),
        ("The free tier of the model has been exhausted.", True),
        ("You have reached your specified API usage limits. You will regain access on 2026-12-01.", True),
        ("This API method requires billing to be enabled. Please enable billing on project #1", True),
        ("Key limit exceeded (monthly limit). Manage it in the settings.", True),
        ("You are using a Trial key, which is limited to 1000 API calls / month.", True),
        ("余额不足或无可用资源包,请充值。", True),
        ("Throttling: too many requests in this minute, no retry yet", False),
        ("The model reached its limit of concurrent requests over the budgeted capacity", False),
        ("Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 requests", False),
        ("Rate limit reached for gpt-4o on tokens per min. Please add a payment method to your account.", False),
        ("You exceeded your current quota, please check your plan and billing details.", False),
        ("The prompt is too long: the context has 4096 tokens", False),
    ],
)
def test_words_about_money_say_that_an_account_is_empty(words: str, spent: bool) -> None:
    body = json.dumps({"error": {"message": words}}).encode()
    assert [refusal_of(status, httpx.Headers(), body).is_out_of_quota for status in (403, 429)] == [spent, spent]
    assert not refusal_of(500, httpx.Headers(), body).is_out_of_quota


def test_a_text_in_parts_and_an_odd_usage_are_no_reason_to_lose_an_answer() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]}, {"type": "text", "text": "ls"}]
    for document in (
        read(whole("stop", parts, usage="many"))[1],
        read(chunk({"content": parts[:1]}) + chunk({"content": parts[1:]}, "stop"), STREAM)[1],
    ):
        message = document["choices"][0]["message"]
        assert (message["content"], message["reasoning_content"]) == ("ls", "hmm")
        assert "usage" not in document
