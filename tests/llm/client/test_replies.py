"""What servers really answer: half an answer, a refusal, thinking in the text. Each is given by a real server."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from curation.llm.client.completion import Completion, CompletionRequest, EndpointTarget
from curation.llm.client.errors import CallError, HalfAnswer, OutOfQuota, RateLimited, Refused, Transient
from curation.llm.client.litellm_client import LiteLlmClient, listed_prices
from judging.answers.read import format_refusal
from tests.model_server import ModelServer

SHARED = Path(__file__).resolve().parents[4] / "shared" / "cases" / "replies.jsonl"
MESSAGES = [{"role": "user", "content": "hello"}]
HALF = "THOUGHT: I will look at"


def ask(server: ModelServer, model: str = "openai/m", base: str = "", **params: Any) -> Completion:
    given = {"max_tokens": 5, "timeout": 5, **params}
    target = EndpointTarget(
        1, "m", model, base or server.api_base, "", given, 1, None, None, Decimal(0), Decimal(1), ""
    )
    return asyncio.run(LiteLlmClient().complete(target, CompletionRequest(MESSAGES)))


def failure(server: ModelServer, **params: Any) -> CallError:
    with pytest.raises(CallError) as raised:
        ask(server, **params)
    assert "Traceback" not in str(raised.value)
    return raised.value


def body(reason: object, message: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": reason, "message": message or {"role": "assistant", "content": HALF}, **more}
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def events(reason: object, **more: Any) -> list[dict[str, Any]]:
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    said = {"index": 0, "delta": {"role": "assistant", "content": HALF}, "finish_reason": None}
    return [
        {**head, "choices": [choice]} for choice in (said, {"index": 0, "delta": {}, "finish_reason": reason, **more})
    ]


AGAIN = ["error", "abort", "load", None, "", "MALFORMED_FUNCTION_CALL", "cancelled", "insufficient_system_resource"]
ENDS: list[tuple[Any, type[CallError]]] = [
    *((reason, Transient) for reason in AGAIN),
    *((reason, HalfAnswer) for reason in ("pause_turn", "model_context_window_exceeded", "model_length", "surprise")),
]


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("reason", "kind"), ENDS)
def test_half_an_answer_is_refused_with_the_reason(
    model_server: ModelServer, reason: Any, kind: type[CallError], is_streamed: bool
) -> None:
    model_server.behave("m", **({"events": events(reason)} if is_streamed else {"body": body(reason), "status": 200}))
    failed = failure(model_server, stream=is_streamed)
    assert isinstance(failed, kind)
    assert str(reason or "end") in str(failed)


@pytest.mark.parametrize("reason", ["stop", "length", "content_filter"])
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_an_answer_with_a_known_end_is_taken(model_server: ModelServer, reason: str, is_streamed: bool) -> None:
    model_server.behave("m", **({"events": events(reason)} if is_streamed else {"body": body(reason), "status": 200}))
    assert ask(model_server, stream=is_streamed).text == HALF


@pytest.mark.parametrize(
    ("reasons", "end"),
    [
        (("eos", "end_turn", "stop_sequence", "STOP"), "stop"),
        (("max_tokens", "MAX_TOKENS", "LENGTH", "max_output_tokens"), "length"),
        (("CONTENT_FILTER", "safety", "Recitation"), "content_filter"),
        (("tool_use", "FUNCTION_CALL"), "tool_calls"),
    ],
)
def test_other_families_names_of_an_end_are_known(
    model_server: ModelServer, reasons: tuple[str, ...], end: str
) -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}]
    message = {"role": "assistant", "content": HALF, **({"tool_calls": calls} if end == "tool_calls" else {})}
    for reason in reasons:
        model_server.behave("m", body=body(reason, message), status=200)
        assert ask(model_server).finish_reason == end


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_an_answer_that_ends_with_a_call_and_has_none_is_tried_again(
    model_server: ModelServer, is_streamed: bool
) -> None:
    given = {"events": events("tool_calls")} if is_streamed else {"body": body("tool_calls"), "status": 200}
    model_server.behave("m", **given)
    failed = failure(model_server, stream=is_streamed)
    assert isinstance(failed, Transient) and "has none" in str(failed)


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_later_stop_does_not_make_half_an_answer_whole(model_server: ModelServer, reason: str) -> None:
    model_server.behave("m", events=[*events(reason), events("stop")[1]])
    assert ask(model_server, stream=True).finish_reason == reason


def test_a_failure_in_the_last_event_is_one_of_the_answer(model_server: ModelServer) -> None:
    said, end = events("stop")
    model_server.behave("m", events=[said, {**end, "base_resp": {"status_code": 1002, "status_msg": "slow down"}}])
    assert "slow down" in str(failure(model_server, stream=True))


@pytest.mark.parametrize(
    ("more", "kind", "words"),
    [
        ({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, OutOfQuota, "balance"),
        ({"error": {"message": "Add credits: none are left, and no balance"}}, OutOfQuota, "credits"),
        ({"prompt_feedback": {"block_reason": "SAFETY"}}, HalfAnswer, "blocked: SAFETY"),
        ({"message": "the model is overloaded"}, Transient, "overloaded"),
        ({}, Transient, "no choices"),
    ],
)
def test_an_answer_without_choices_is_refused_in_the_servers_words(
    model_server: ModelServer, more: dict[str, Any], kind: type[CallError], words: str
) -> None:
    model_server.behave("m", body={**body("stop"), "choices": [], **more}, status=200)
    failed = failure(model_server)
    assert type(failed) is kind and words in str(failed)


def test_an_answer_of_ollama_that_is_not_done_is_tried_again(model_server: ModelServer) -> None:
    message = {"role": "assistant", "content": HALF}
    model_server.behave("m", body={"model": "m", "message": message, "done": False}, status=200)
    with pytest.raises(Transient, match="no end"):
        ask(model_server, "openai/m")


def test_a_request_larger_than_the_limit_per_minute_is_not_sent_again(model_server: ModelServer) -> None:
    words = "Request too large for m on tokens per min (TPM): Limit 30000, Requested 45000."
    model_server.behave("m", body={"error": {"message": words, "code": "rate_limit_exceeded"}}, status=429)
    assert type(failure(model_server)) is Refused


@pytest.mark.parametrize("status", [425, 501, 507, 520, 524, 530])
def test_each_fault_of_a_gateway_is_tried_again(model_server: ModelServer, status: int) -> None:
    model_server.behave("m", body={"error": {"message": "it broke"}}, status=status)
    assert isinstance(failure(model_server), Transient)


@pytest.mark.parametrize(("reason", "kind"), [("end_turn", None), ("pause_turn", HalfAnswer), (None, Transient)])
def test_the_end_of_anthropics_answers_is_read_too(
    model_server: ModelServer, reason: str | None, kind: type[CallError] | None
) -> None:
    said: dict[str, Any] = {"type": "message", "id": "x", "role": "assistant", "model": "m", "stop_sequence": None}
    said |= {"content": [{"type": "text", "text": HALF}], "usage": {"input_tokens": 9, "output_tokens": 9}}
    model_server.behave("m", body={**said, "stop_reason": reason}, status=200)
    base = model_server.api_base.removesuffix("/v1")
    if kind is None:
        assert ask(model_server, "anthropic/m", base).text == HALF
    else:
        with pytest.raises(kind):
            ask(model_server, "anthropic/m", base)


@pytest.mark.parametrize(
    ("error", "kind"),
    [({"code": 502, "message": "upstream"}, Transient), ({"code": 400, "message": "upstream"}, Refused)],
)
@pytest.mark.parametrize("reason", ["error", "stop"])
def test_an_error_in_the_choice_is_said_in_the_gateways_words(
    model_server: ModelServer, error: dict[str, Any], kind: type[CallError], reason: str
) -> None:
    model_server.behave("m", body=body(reason, error=error), status=200)
    failed = failure(model_server)
    assert isinstance(failed, kind) and "upstream" in str(failed)
    model_server.behave("m", events=events(reason, error=error))
    assert "upstream" in str(failure(model_server, stream=True))


def test_a_refusal_fails_with_its_words(model_server: ModelServer) -> None:
    message = {"role": "assistant", "content": None, "refusal": "I can't help with that."}
    model_server.behave("m", body=body("stop", message), status=200)
    assert "I can't help with that." in str(failure(model_server))


@pytest.mark.parametrize(
    "content",
    [
        "<|channel|>analysis<|message|>think<|end|><|start|>assistant<|channel|>final<|message|>ls",
        "<|channel|>final<|message|>ls<|return|>",
        "<seed:think>think</seed:think>ls",
        "think</think>ls",
        "think</seed:think>\n\nls",
        "analysis<|message|>think<|end|><|start|>assistant<|channel|>final<|message|>ls",
        "analysis(think)assistantfinalls",
        "<longcat_think>think</longcat_think>ls",
        "<seed:cot_budget_reflect>think</seed:cot_budget_reflect>ls",
        "ls<|im_end|>",
        "ls</s>\n",
        "ls<｜end▁of▁sentence｜>",
    ],
)
def test_thinking_in_the_text_is_split_off(model_server: ModelServer, content: str) -> None:
    model_server.behave("m", body=body("stop", {"role": "assistant", "content": content}), status=200)
    said = ask(model_server)
    assert (said.text, said.thinking.strip("()")) == ("ls", "think" if "think" in content else "")


@pytest.mark.parametrize("names", [("reasoning",), ("reasoning_content",), ("reasoning", "reasoning_content")])
def test_thinking_beside_the_text_is_read_under_both_names(model_server: ModelServer, names: tuple[str, ...]) -> None:
    message = {"role": "assistant", "content": "ls", **dict.fromkeys(names, "think")}
    model_server.behave("m", body=body("stop", message), status=200)
    said = ask(model_server)
    assert (said.text, said.thinking) == ("ls", "think")


def test_parts_of_a_message_are_text_thinking_or_a_refusal(model_server: ModelServer) -> None:
    parts: list[dict[str, Any]] = [{"type": "thinking", "thinking": "think"}, {"type": "output_text", "text": "ls"}]
    model_server.behave("m", body=body("stop", {"role": "assistant", "content": parts}), status=200)
    said = ask(model_server)
    assert (said.text, said.thinking) == ("ls", "think")
    parts[1] = {"type": "refusal", "refusal": "I will not."}
    model_server.behave("m", body=body("stop", {"role": "assistant", "content": parts}), status=200)
    assert "I will not." in str(failure(model_server))


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry-after-ms": "1500"}, 1.5, 1.5),
        ({"Retry-After": "2.5"}, 2.5, 2.5),
        ({"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"}, 600, 600),
        ({"Retry-After": "in five minutes, as a date"}, 270, 300),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, 0),
        ({"retry-after-ms": "soon", "Retry-After": "3"}, 3, 3),
        ({"Retry-After": "nan"}, None, None),
        ({}, None, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_each_spelling_of_how_long_to_wait_is_read(
    model_server: ModelServer, headers: dict[str, str], least: float | None, most: float | None, status: int
) -> None:
    if headers.get("Retry-After", "").startswith("in five minutes"):  # from now, not from the collection of the tests
        headers = {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(seconds=300), usegmt=True)}
    model_server.behave("m", body={"error": {"message": "slow down"}, "_headers": headers}, status=status)
    failed = failure(model_server)
    assert isinstance(failed, RateLimited if status == 429 else Transient)
    wait = failed.retry_after
    assert wait is None if least is None or most is None else wait is not None and least <= wait <= most


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}),
        (429, {"message": "You exceeded your current quota", "type": "insufficient_quota"}),
        (402, {"message": "This request requires more credits", "code": 402}),
        (402, {"message": "Pay first"}),
        (400, {"message": "Your credit balance is too low to access the API", "type": "invalid_request_error"}),
        (429, {"message": "Insufficient balance"}),
    ],
)
def test_an_endpoint_without_credit_is_out_of_quota(
    model_server: ModelServer, status: int, error: dict[str, Any]
) -> None:
    model_server.behave("m", body={"error": error}, status=status)
    for stream in (False, True):
        failed = failure(model_server, stream=stream)
        assert isinstance(failed, OutOfQuota)
        assert "out of quota" in str(failed) and error["message"] in str(failed)


def test_a_limit_per_minute_that_is_called_a_quota_is_tried_again(model_server: ModelServer) -> None:
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota"}
    model_server.behave("m", body={"error": error}, status=429)
    assert isinstance(failure(model_server), RateLimited)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"error": {"message": "no such model"}}, "no such model"),
        ({"detail": "no such model"}, "no such model"),
        ({"detail": [{"msg": "field required", "loc": ["body"]}]}, "field required"),
        ({"error": "no such model"}, "no such model"),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": "no such model"}}}, "no such model"),
    ],
)
@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_gateways_message_is_shown_in_words(
    model_server: ModelServer, given: dict[str, Any], words: str, status: int
) -> None:
    model_server.behave("m", body=given, status=status)
    said = str(failure(model_server))
    assert words in said and "{" not in said


def _cases() -> list[Any]:
    if not SHARED.exists():
        return []
    lines = map(json.loads, SHARED.read_text(encoding="utf-8").splitlines())
    return [pytest.param(case, id=case["name"]) for case in lines]


RIGHT: dict[str, tuple[type[CallError], str]] = {
    "error in the choice": (Transient, "upstream"),
    "abort": (Transient, "abort"),
    "pause_turn": (HalfAnswer, "pause_turn"),
    "context exceeded": (HalfAnswer, "cut off"),
    "no reason": (Transient, "no end"),
    "refusal": (HalfAnswer, "I can't help with that."),
    "quota": (OutOfQuota, "out of quota"),
    "retry in milliseconds": (RateLimited, "slow down"),
}


@pytest.mark.parametrize("case", _cases())
def test_the_shared_replies_are_read_right(model_server: ModelServer, case: dict[str, Any]) -> None:
    model_server.behave("m", body=case["body"], status=case["status"])
    if case["name"] == "harmony":
        said = ask(model_server)
        assert (said.text, said.thinking) == ("ls", "think")
    elif case["name"] == "tool tokens in text":
        said = ask(model_server)
        assert format_refusal(said.text, finish_reason=said.finish_reason) == "tool_call_token"
    else:
        kind, words = RIGHT[case["name"]]
        failed = failure(model_server)
        assert isinstance(failed, kind) and words in str(failed)
        if case["name"] == "retry in milliseconds":
            assert isinstance(failed, RateLimited) and failed.retry_after == 1.5


@pytest.mark.parametrize(
    ("usage", "headers", "cost"),
    [
        ({"cost": 0.0125}, {}, Decimal("0.0125")),
        ({"cost": 0}, {}, Decimal(0)),
        ({}, {"x-litellm-response-cost": "2.5e-05"}, Decimal("0.000025")),
        ({"cost": 0.0001, "is_byok": True}, {}, None),
        ({"cost": -1}, {}, None),
        ({"cost": "much"}, {}, None),
        ({}, {}, None),
    ],
)
def test_a_reported_cost_counts_where_the_endpoint_has_no_prices(
    model_server: ModelServer, usage: dict[str, Any], headers: dict[str, str], cost: Decimal | None
) -> None:
    said = body("stop")
    model_server.behave("m", body={**said, "usage": {**said["usage"], **usage}, "_headers": headers}, status=200)
    target = EndpointTarget(1, "m", "openai/m", model_server.api_base, "", {}, 1, None, None, None, None, "")
    assert asyncio.run(LiteLlmClient().complete(target, CompletionRequest(MESSAGES))).cost == cost
    assert ask(model_server).cost == Decimal("0.000009")


@pytest.mark.parametrize(
    ("model", "prices"),
    [
        ("openai/gpt-4o-mini", (Decimal("1.5E-7"), Decimal("6E-7"))),
        ("gpt-4o-mini", (Decimal("1.5E-7"), Decimal("6E-7"))),
        ("anthropic/claude-sonnet-4-5", (Decimal("0.000003"), Decimal("0.000015"))),
        ("openrouter/openai/gpt-5", None),
        ("openai/no-such-model", None),
    ],
)
def test_the_list_of_prices_knows_a_model_under_each_of_its_names(
    model: str, prices: tuple[Decimal, Decimal] | None
) -> None:
    assert listed_prices(model) == prices
