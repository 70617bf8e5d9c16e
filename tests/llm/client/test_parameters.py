"""What is sent of an endpoint's parameters, seen by a real server: the schema, and the limit of tokens."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from curation.llm.client.completion import Completion, Request, Target
from curation.llm.client.errors import Refused
from curation.llm.client.litellm_client import LiteLlmClient
from curation.runs.calls.budget import highest_cost
from curation.runs.endpoint_check.kind import READY_FORMAT
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.models import Call
from tests.factories import make_endpoint, make_project
from tests.model_server import ModelServer
from tests.model_server import model_server as model_server

MESSAGES = [{"role": "user", "content": "hello"}]


def target(server: ModelServer, **params: Any) -> Target:
    given = {"max_tokens": 5, "timeout": 5, **params}
    return Target(1, "m", "openai/judge-a", server.api_base, "", given, 1, None, None, Decimal(0), Decimal(1), "")


def ask(server: ModelServer, *, schema: dict[str, object] | None = None, **params: Any) -> Completion:
    return asyncio.run(LiteLlmClient().complete(target(server, **params), Request(MESSAGES, schema=schema)))


def test_a_schema_is_sent_where_the_endpoint_says_so(model_server: ModelServer) -> None:
    model_server.behave("judge-a", refuses=["response_format"])
    for params in ({}, {"takes_json_schema": False}):
        ask(model_server, schema=READY_FORMAT, **params)

    with pytest.raises(Refused, match="response_format"):
        ask(model_server, schema=READY_FORMAT, takes_json_schema=True)
    ask(model_server, takes_json_schema=True)  # this request has no schema


def test_max_completion_tokens_takes_the_place_of_max_tokens(model_server: ModelServer) -> None:
    model_server.behave("judge-a", refuses=["max_tokens", "takes_json_schema"])
    with pytest.raises(Refused, match="max_tokens"):
        ask(model_server)

    ask(model_server, max_completion_tokens=50)

    request = Request(MESSAGES, {"max_tokens": 5})
    wide = highest_cost(target(model_server, max_completion_tokens=1_000_000), request)
    assert wide == Decimal(1)  # a dollar per million tokens: a budget reserves the limit that is sent


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"text": '{"word": "ready"}'}, True),
        ({"text": "ready"}, False),
        ({"text": "ready", "refuses": ["response_format"]}, False),
    ],
)
def test_the_test_of_an_endpoint_says_whether_it_takes_a_schema(
    model_server: ModelServer, how: dict[str, Any], expected: bool
) -> None:
    project = make_project()
    make_endpoint(project, "judge-a", model="openai/judge-a", api_base=model_server.api_base, api_key_env="")
    model_server.behave("judge-a", **how)
    run = launch(project=project, kind="test", params={"model": "judge-a"}, user=None)
    drive(run.pk)
    run.refresh_from_db()
    assert (run.result["ok"], run.result["takes_json_schema"], model_server.counts().asked) == (True, expected, 4)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("how", "params", "expected"),
    [
        ({}, {}, (True, True, False)),
        ({"calls": True}, {"stream": True, "takes_tools": False}, (True, True, True)),
        ({"refuses": ["stream", "tools"]}, {}, (True, False, False)),
        ({"only_streams": True}, {}, (False, True, None)),
        ({"only_streams": True}, {"stream": True}, (True, True, False)),
        ({"error": 1, "status": 400}, {}, (False, False, None)),
    ],
)
def test_the_test_of_an_endpoint_says_whether_it_streams_and_takes_tools(
    model_server: ModelServer, how: dict[str, Any], params: dict[str, Any], expected: tuple[bool, bool, bool]
) -> None:
    project = make_project()
    base = model_server.api_base
    make_endpoint(project, "judge-a", model="openai/judge-a", api_base=base, api_key_env="", params=params)
    model_server.behave("judge-a", **how)
    run = launch(project=project, kind="test", params={"model": "judge-a"}, user=None)
    drive(run.pk)
    run.refresh_from_db()
    assert tuple(run.result[name] for name in ("ok", "streams", "takes_tools")) == expected
    assert (run.result["first_token_ms"] is not None) == (expected[0] and bool(params.get("stream")))
    assert ("set `stream`" in str(run.result["error"])) == (expected[:2] == (False, True))
    first = Call.objects.filter(run=run).order_by("pk")[0]
    assert first.first_token_ms == run.result["first_token_ms"]
