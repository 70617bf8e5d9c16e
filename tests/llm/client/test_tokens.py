"""Token ids and log-probabilities of answers, from a real server: as vLLM, SGLang and OpenAI give them, or not."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from curation.llm.client.completion import Completion, CompletionRequest, EndpointTarget
from curation.llm.client.litellm_client import LiteLlmClient
from curation.llm.client.tokens import ASKED
from tests.model_server import ModelServer

LOGPROBS = {"content": [{"token": "ls", "logprob": -0.25, "top_logprobs": []}, {"token": "", "logprob": -0.5}]}
GIVEN = {"prompt_token_ids": [1, 2, 3], "completion_token_ids": [7, 8], "logprobs": [-0.25, -0.5]}


def answer(choice: dict[str, Any], **document: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": "ls"}
    choices = [{"index": 0, "message": said, "finish_reason": "stop", **choice}]
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    head = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    return {**head, "choices": choices, **document}


def ask(server: ModelServer, **params: Any) -> Completion:
    given = {"timeout": 5, **params}
    target = EndpointTarget(
        1, "m", "openai/judge-a", server.api_base, "", given, 1, None, None, Decimal(0), Decimal(0), ""
    )
    request = CompletionRequest([{"role": "user", "content": "hello"}], ASKED)
    return asyncio.run(LiteLlmClient().complete(target, request))


@pytest.mark.parametrize(
    "body",
    [
        answer({"token_ids": [7, 8], "logprobs": LOGPROBS}, prompt_token_ids=[1, 2, 3]),
        answer({"prompt_token_ids": [1, 2, 3], "completion_token_ids": [7, 8], "logprobs": LOGPROBS}),
    ],
    ids=["vLLM", "SGLang"],
)
def test_tokens_are_read_where_servers_have_them(model_server: ModelServer, body: dict[str, Any]) -> None:
    model_server.behave("judge-a", body=body, status=200)
    said = ask(model_server)
    assert (said.text, said.tokens) == ("ls", GIVEN)


def test_tokens_of_a_stream_are_put_together(model_server: ModelServer) -> None:
    parts = zip([7, 8], LOGPROBS["content"], ["l", "s"], [None, "stop"], strict=True)
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": end, **tokens}]}
        for token, logprob, text, end in parts
        for tokens in [{"token_ids": [token], "logprobs": {"content": [logprob]}}]
    ]
    first = {"prompt_token_ids": [1, 2, 3], "choices": [{"index": 0, "delta": {"role": "assistant"}}]}
    model_server.behave("judge-a", events=[first, *chunks])
    said = ask(model_server, stream=True)
    assert (said.text, said.tokens) == ("ls", GIVEN)


@pytest.mark.parametrize(
    ("choice", "tokens"),
    [
        ({}, {}),
        ({"logprobs": None, "token_ids": None}, {}),
        ({"token_ids": "7 8"}, {}),
        ({"logprobs": LOGPROBS}, {"logprobs": [-0.25, -0.5]}),
        ({"token_ids": [7, 8, 9], "logprobs": LOGPROBS}, {"completion_token_ids": [7, 8, 9]}),
    ],
    ids=["nothing", "null", "no ids", "OpenAI", "one too few"],
)
def test_what_a_server_does_not_give_is_not_there(
    model_server: ModelServer, choice: dict[str, Any], tokens: dict[str, Any]
) -> None:
    model_server.behave("judge-a", body=answer(choice), status=200)
    assert ask(model_server).tokens == tokens


def test_a_server_that_refuses_to_say_them_is_asked_without(model_server: ModelServer) -> None:
    model_server.behave("judge-a", refuses=["return_token_ids", "logprobs"], text="ls")
    said = ask(model_server)
    assert (said.text, said.tokens) == ("ls", {})
    asked = model_server.counts("judge-a")
    assert (asked.failed, asked.answered) == (2, 1)
    ask(model_server)
    assert model_server.counts("judge-a").failed == 2
