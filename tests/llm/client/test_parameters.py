"""An endpoint's parameters in requests, as a real server sees them: the schema, and the limit of tokens."""

import asyncio
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from curation.llm.client.completion import Completion, CompletionRequest, EndpointTarget
from curation.llm.client.errors import Refused
from curation.llm.client.gateway import listed_prices, target_of
from curation.llm.client.litellm_client import LiteLlmClient
from curation.projects.models import Role
from curation.runs.calls.budget import highest_cost
from curation.runs.endpoint_check.kind import READY_FORMAT
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.models import Call, Run
from tests.factories import make_bearer, make_endpoint, make_member, make_project, make_user
from tests.model_server import ModelServer

MESSAGES = [{"role": "user", "content": "hello"}]


def target(server: ModelServer, **params: Any) -> EndpointTarget:
    given = {"max_tokens": 5, "timeout": 5, **params}
    return EndpointTarget(
        1, "m", "openai/judge-a", server.api_base, "", given, 1, None, None, Decimal(0), Decimal(1), ""
    )


def ask(server: ModelServer, *, schema: dict[str, object] | None = None, **params: Any) -> Completion:
    return asyncio.run(LiteLlmClient().complete(target(server, **params), CompletionRequest(MESSAGES, schema=schema)))


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

    request = CompletionRequest(MESSAGES, {"max_tokens": 5})
    wide = highest_cost(target(model_server, max_completion_tokens=1_000_000), request)
    assert wide == Decimal(1)  # a dollar per million tokens: a budget reserves the limit that is sent


@pytest.mark.parametrize("model", ["openai/judge-a", "openai/o3"])
def test_a_default_that_the_model_refuses_is_left_out(model_server: ModelServer, model: str) -> None:
    model_server.behave(model.removeprefix("openai/"), refuses=["temperature"])
    given = replace(target(model_server), model=model)
    for _ in range(2):
        request = CompletionRequest(MESSAGES, {"temperature": 0.7, "max_tokens": 5})
        assert asyncio.run(LiteLlmClient().complete(given, request)).text
    assert model_server.counts().answered == 2
    assert model_server.counts().failed == (
        1 if model == "openai/judge-a" else 0
    )  # LiteLLM knows o3, and sends nothing


@pytest.mark.parametrize("model", ["openai/judge-a", "openai/o3"])
def test_a_parameter_that_the_endpoint_sets_is_refused_in_words(model_server: ModelServer, model: str) -> None:
    model_server.behave(model.removeprefix("openai/"), refuses=["temperature"])
    given = replace(target(model_server, temperature=0.7), model=model)
    request = CompletionRequest(MESSAGES, {"temperature": 0.7, "max_tokens": 5})
    with pytest.raises(Refused, match="the parameters of the endpoint set `temperature`"):
        asyncio.run(LiteLlmClient().complete(given, request))
    assert model_server.counts().answered == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("params", "is_ok"), [({}, True), ({"temperature": 0.2}, False)])
def test_the_test_of_an_endpoint_sends_a_temperature_as_runs_do(
    model_server: ModelServer, params: dict[str, Any], is_ok: bool
) -> None:
    project = make_project()
    base = model_server.api_base
    make_endpoint(project, "judge-a", model="openai/judge-a", api_base=base, api_key_env="", params=params)
    model_server.behave("judge-a", refuses=["temperature"])
    run = launch(project=project, kind="test", params={"model": "judge-a"}, user=None)
    drive(run.pk)
    run.refresh_from_db()
    assert run.result["ok"] is is_ok
    assert ("`temperature`" in str(run.result["error"])) is not is_ok


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
        ({"only_streams": True}, {}, (False, True, False)),
        ({"only_streams": True, "refusal": 500, "calls": True}, {}, (False, True, True)),
        ({"only_streams": True}, {"stream": True}, (True, True, False)),
        ({"refuses": ["stream_options"]}, {}, (True, True, False)),
        ({"refuses": ["stream_options"], "refuses_with": 500}, {"stream": True}, (True, True, False)),
        ({"refuses": ["stream_options"], "only_streams": True, "refusal": 500}, {}, (False, True, False)),
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


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("how", "found"),
    [
        ({"refuses": ["max_tokens"]}, {"takes_max_tokens": False}),
        ({"only_streams": True, "refusal": 502}, {"stream": True}),
        ({"only_streams": True, "refusal": 500, "refuses": ["stream_options"]}, {"stream": True}),
        ({"refuses": ["max_tokens"], "only_streams": True}, {"stream": True, "takes_max_tokens": False}),
    ],
)
def test_what_the_test_finds_is_set_by_one_call_and_the_endpoint_then_answers(
    client: Client, model_server: ModelServer, how: dict[str, Any], found: dict[str, bool]
) -> None:
    project = make_project("shell", user=make_user("ada"))
    headers = make_bearer(project.members.get().user)
    base = {"api_base": model_server.api_base, "params": {"temperature": 0.5}}
    endpoint = make_endpoint(project, "judge-a", model="openai/judge-a", **base)
    model_server.behave("judge-a", text='{"word": "ready"}', calls=True, **how)
    address = "/api/v1/projects/shell/models/judge-a/apply-test"
    assert client.post(address, headers=headers).json()["code"] == "not_tested"

    def tried() -> Run:
        run = launch(project=project, kind="test", params={"model": "judge-a"}, user=None)
        drive(run.pk)
        run.refresh_from_db()
        return run

    first = tried()
    assert first.result["ok"] is False and "set `" in first.result["error"]
    assert first.result["params"] == {**found, "takes_json_schema": True, "takes_tools": True}
    client.force_login(project.members.get().user)
    shown = client.get("/p/shell/models/judge-a/test/").content.decode()
    assert "/p/shell/models/judge-a/apply-test/" in shown and "takes_json_schema: yes" in shown
    applied = client.post(address, headers=headers)

    assert (applied.status_code, applied["ETag"]) == (200, '"2"')
    assert applied.json()["params"] == {"temperature": 0.5, **first.result["params"]}
    assert client.post(address, headers=headers).json()["code"] == "not_tested"
    answered = tried()
    assert answered.result["ok"] is True
    if "stream_options" in how.get("refuses", ()):
        assert (answered.result["tokens_in"], answered.result["tokens_out"]) == (None, None)
        assert "tokens unknown" in client.get("/p/shell/models/judge-a/test/").content.decode()
        page = client.get(f"/p/shell/runs/{answered.pk}/").content.decode()
        assert re.search(r"Tokens in</span><span class=\"figure__value\">unknown<", page)
        assert set(Call.objects.filter(run=answered).values_list("tokens_in", "tokens_out")) == {(None, None)}
    endpoint.refresh_from_db()
    assert "apply-test" not in client.get("/p/shell/models/judge-a/test/").content.decode()
    assert client.post(address, headers=make_bearer(make_member(project, role=Role.CURATOR))).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_prices_of_the_list_are_set_with_what_the_test_found(client: Client, model_server: ModelServer) -> None:
    project = make_project("shell", user=make_user("ada"))
    endpoint = make_endpoint(project, "judge-a", model="openai/gpt-4o-mini", price_in=None, price_out=None)
    assert listed_prices(target_of(endpoint)) == {"price_in": "0.15", "price_out": "0.6"}
    assert listed_prices(replace(target_of(endpoint), api_base=model_server.api_base)) == {}
    assert listed_prices(replace(target_of(endpoint), price_in=Decimal(1))) == {}
    run = launch(project=project, kind="test", params={"model": "judge-a"}, user=None)
    result = {**run.result, "ok": True, "params": {}, "prices": listed_prices(target_of(endpoint))}
    Run.objects.filter(pk=run.pk).update(state="succeeded", result=result)

    headers = make_bearer(project.members.get().user)
    client.force_login(project.members.get().user)
    shown = client.get("/p/shell/models/judge-a/test/").content.decode()
    assert "price_in: 0.15, price_out: 0.6" in shown
    assert client.post("/api/v1/projects/shell/models/judge-a/apply-test", headers=headers).status_code == 200
    endpoint.refresh_from_db()
    assert (endpoint.price_in, endpoint.price_out) == (Decimal("0.15"), Decimal("0.6"))
