"""Asking a real HTTP server through LiteLLM: retries, pauses, valid answers, the record, the cache."""

import logging
import threading
import time
from decimal import Decimal
from typing import Any

import pytest
from django.apps import apps
from django.db.models import Sum

from curation.llm.client.completion import CompletionRequest, EndpointTarget
from curation.runs.calls.ask import SHORT_QUESTION
from curation.runs.calls.budget import BudgetHeld, BudgetSpent, reserve_cost
from curation.runs.control import retry_failed
from curation.runs.kinds import MOST_TRIES
from curation.runs.models import Call, CallStatus, CallText, Item, ItemState, Run, RunState
from tests.model_server import ModelServer
from tests.runs.asking import asked, end, impatient, make_asked, start
from tests.sampled import one_of

FREE = Decimal(0)
pytestmark = pytest.mark.django_db(transaction=True)


def reasons(run: Run) -> list[str]:
    return list(Item.objects.filter(run=run, state=ItemState.FAILED).values_list("reason", flat=True))


@pytest.mark.parametrize("status", one_of(3, [408, 409, 500, 502, 503, 504, 529]))
def test_a_status_that_may_pass_is_asked_again_until_it_does(server: ModelServer, status: int) -> None:
    server.behave(error=0.5, status=status)
    run = asked(make_asked(server), n=6)
    assert (run.state, run.items_failed) == (RunState.SUCCEEDED, 0)
    assert server.counts().asked == run.calls > 6
    assert set(Call.objects.filter(status="error").values_list("error_kind", flat=True)) == {"transient"}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_asked_once_and_keeps_the_servers_words(server: ModelServer, status: int) -> None:
    server.behave(error=1, status=status, detail="ValueError: the context is too long")
    run = asked(make_asked(server), n=1)
    assert (run.state, server.counts().asked) == (RunState.FAILED, 1)
    assert "Error: ValueError: the context is too long" in reasons(run)[0]
    assert "litellm" not in reasons(run)[0]
    call = Call.objects.get()
    assert (call.error_kind, call.cost, call.latency_ms is not None) == ("refused", FREE, True)


def test_what_never_passes_is_given_up_with_its_reason_and_the_number_of_tries(server: ModelServer) -> None:
    server.behave(error=1)
    run = asked(make_asked(server, project=impatient()), n=1)
    assert server.counts().asked == 7  # and a short request that shows that the endpoint is down
    assert "tried 6 times" in reasons(run)[0]
    assert (run.cost, run.cost_unknown_calls) == (FREE, 7)  # whether a broken answer was paid for, nobody knows


def test_a_budget_that_is_held_by_other_calls_stops_no_run_whose_endpoint_is_checked(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reserve(
        run_id: int, target: EndpointTarget, request: CompletionRequest
    ) -> Decimal | BudgetHeld | BudgetSpent | None:
        return BudgetHeld() if SHORT_QUESTION in str(request.messages) else reserve_cost(run_id, target, request)

    monkeypatch.setattr("curation.runs.calls.record.reserve_cost", reserve)
    monkeypatch.setattr("curation.runs.calls.ask._pause", lambda tried, retry_after: 0.0)
    server.behave(error=1)
    run = asked(make_asked(server, project=impatient()), n=1, budget=Decimal(1))
    assert "tried 6 times" in reasons(run)[0]


@pytest.mark.parametrize(("how", "streams"), [("broken", False), ("drop", False), ("broken", True)])
def test_half_an_answer_is_asked_again(server: ModelServer, how: str, streams: bool) -> None:
    half: dict[str, Any] = {how: 0.3}  # an item fails all of its 6 tries once in 1,400
    server.behave(**half)
    run = asked(make_asked(server, params={"stream": streams}), n=6)
    counts = server.counts()
    assert (run.items_failed, counts.answered) == (0, 6)
    assert counts.broken + counts.dropped > 0
    calls = Call.objects.filter(run=run)
    assert calls.filter(status="error", cost=None).count() == counts.broken + counts.dropped
    assert {call.first_token_ms is not None for call in calls.filter(status="ok")} == {streams}


def test_a_server_that_hangs_is_left_after_the_endpoints_timeout(server: ModelServer) -> None:
    server.behave(hang=1)
    project = make_asked(server, project=impatient(), params={"timeout": 0.3})
    run = asked(project, n=1)
    assert "no answer within 0.3 s" in reasons(run)[0]
    assert {call.error_kind for call in Call.objects.all()} == {"timeout"}


def test_a_refused_connection_is_a_reason_in_words() -> None:
    server = ModelServer()
    project = make_asked(server, project=impatient())
    server.stop()
    run = asked(project, n=1)
    assert f"127.0.0.1:{server.port} refused the connection" in reasons(run)[0]


def test_a_storm_of_429s_does_not_burn_the_tries(server: ModelServer) -> None:
    server.behave(rate_limit=1)
    run = start(make_asked(server), n=1)

    def clear_up() -> None:
        while server.counts().rate_limited < MOST_TRIES + 2:
            time.sleep(0.05)
        server.behave()

    weather = threading.Thread(target=clear_up)
    weather.start()
    end(run)
    weather.join()
    assert (run.items_failed, server.counts().answered) == (0, 1)
    assert Call.objects.filter(error_kind="rate_limited", cost=0).count() >= MOST_TRIES + 2
    assert run.cost_unknown_calls == 0


def test_the_servers_retry_after_is_kept(server: ModelServer) -> None:
    server.behave(rate_limit=0.6, retry_after=0.5)
    asked(make_asked(server), n=1)
    times = server.counts().times
    assert all(later - earlier >= 0.5 for earlier, later in zip(times, times[1:], strict=False))


def test_thinking_is_kept_apart_from_the_answer(server: ModelServer) -> None:
    server.behave("judge-a", text="<think>They expect a trick.</think>The answer.")
    server.behave("judge-b", text="The answer.", thinking="They expect a trick.")
    project = make_asked(server)
    make_asked(server, "judge-b", project)
    for model in ("judge-a", "judge-b"):
        item = Item.objects.get(run=asked(project, n=1, model=model), stage="ask")
        assert (item.result["text"], item.result["thinking"]) == ("The answer.", "They expect a trick.")
    assert not CallText.objects.filter(text__contains="trick").exists()


def test_a_reply_cut_by_the_token_limit_says_so(server: ModelServer) -> None:
    server.behave(cut=1)
    run = asked(make_asked(server), n=1)
    assert Item.objects.get(run=run, stage="ask").result["finish"] == "length"


def test_the_token_limit_is_sent_as_it_was_set(server: ModelServer) -> None:
    """LiteLLM's list says that this model writes 16,384 tokens at most; whoever serves the name may allow more."""
    asked(make_asked(server, model="openai/gpt-4o-mini"), n=1, max_tokens=20_000)
    assert server.counts().max_tokens == [20_000]


def test_text_that_no_database_stores_does_not_cost_its_answer(server: ModelServer) -> None:
    server.behave(text="one\0two\ud800")
    run = asked(make_asked(server), n=1)
    assert (run.items_failed, server.counts().asked) == (0, 1)
    assert CallText.objects.get().text == "one\N{REPLACEMENT CHARACTER}two?"


def test_tokens_that_the_server_does_not_say_are_unknown_and_so_is_the_cost(server: ModelServer) -> None:
    server.behave(usage=False)
    run = asked(make_asked(server), n=2)
    call = Call.objects.first()
    assert call is not None
    assert (call.tokens_in, call.cost) == (None, None)
    assert (run.cost, run.cost_unknown_calls) == (FREE, 2)


def test_counters_are_the_sums_of_the_calls(server: ModelServer) -> None:
    server.behave(error=0.1, rate_limit=0.2, broken=0.05)  # six tries in a row do not fail all
    run = asked(make_asked(server, price_in=Decimal("0.075"), price_out=Decimal("0.35")), n=20)
    calls = Call.objects.filter(run=run)
    sums = calls.aggregate(cost=Sum("cost"), tokens_in=Sum("tokens_in"), tokens_out=Sum("tokens_out"))
    assert (run.calls, run.cost_unknown_calls) == (calls.count(), calls.filter(cost=None).count())
    assert (run.tokens_in, run.tokens_out) == (sums["tokens_in"], sums["tokens_out"])
    assert run.cost == round(sums["cost"], 8) > 0
    assert calls.filter(status=CallStatus.OK).count() == server.counts().answered == 20


def test_the_same_request_is_answered_from_the_projects_record_unless_the_answer_must_be_fresh(
    server: ModelServer,
) -> None:
    project = make_asked(server)
    first, second = asked(project, n=4), asked(project, n=4)
    assert (server.counts().asked, second.calls, second.cost) == (4, 0, FREE)
    said = [
        dict(Item.objects.filter(run=run, stage="ask").values_list("key", "result__text")) for run in (first, second)
    ]
    assert said[0] == said[1]
    assert asked(project, n=4, fresh=True).calls == 4
    assert asked(make_asked(server), n=4).calls == 4


def test_a_request_that_is_under_way_is_not_sent_a_second_time(server: ModelServer) -> None:
    server.behave("*", latency=0.3)
    project = make_asked(server)
    run = asked(project, n=6, alike=True)
    results = Item.objects.filter(run=run, stage="ask", state="done").values_list("result", flat=True)
    assert (server.counts().asked, run.calls, len(results)) == (1, 1, 6)
    assert len({result["text"] for result in results}) == 1 and sum(not result["cached"] for result in results) == 1
    assert asked(project, n=3, alike=True, fresh=True).calls == 3


def test_items_that_wait_for_the_answer_of_another_ask_themselves_when_it_fails(server: ModelServer) -> None:
    server.behave("*", latency=0.2, error=1.0, status=400)
    run = asked(make_asked(server), n=3, alike=True)
    assert (server.counts().asked, len(reasons(run))) == (3, 3)


def test_failures_are_not_kept_as_answers(server: ModelServer) -> None:
    project = make_asked(server)
    server.behave(error=1, status=400)
    asked(project, n=2)
    server.behave()
    assert asked(project, n=2).items_failed == 0


def test_what_failed_for_its_answer_is_asked_anew_when_it_is_tried_again(server: ModelServer) -> None:
    server.behave(text="I cannot")
    project = make_asked(server)
    run = asked(project, n=2, refuse="cannot")
    assert (run.state, run.items_failed) == (RunState.FAILED, 2)
    server.behave(text="I can")
    retry_failed(run=run, user=None)
    assert (end(run).state, run.items_failed, server.counts().asked) == (RunState.SUCCEEDED, 0, 4)


def test_the_key_goes_to_the_server_and_nowhere_else(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "sk-never-to-be-seen-0123456789"
    monkeypatch.setenv("MODEL_KEY_TEST", secret)
    caplog.set_level(logging.DEBUG)
    server.behave(error=0.5, status=401, detail=f"Incorrect API key provided: {secret}")
    run = asked(make_asked(server, api_key_env="MODEL_KEY_TEST"), n=6)
    assert server.counts().keys == [f"Bearer {secret}"] * 6
    assert 0 < run.items_failed < 6
    assert "[key]" in reasons(run)[0]
    assert secret not in caplog.text
    for model in apps.get_models():
        assert secret not in repr(list(model._default_manager.values())), model


def test_a_missing_key_variable_is_named(server: ModelServer) -> None:
    run = asked(make_asked(server, api_key_env="MODEL_KEY_NOT_SET"), n=1)
    assert "MODEL_KEY_NOT_SET" in reasons(run)[0]
    assert server.counts().asked == 0


def test_without_a_key_variable_no_key_of_the_environment_is_sent(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-server")
    asked(make_asked(server), n=1)
    assert "sk-of-the-server" not in server.counts().keys[0]


def test_a_model_without_a_price_stays_unpriced_however_often_it_is_asked(server: ModelServer) -> None:
    run = asked(make_asked(server, price_out=None), n=3)
    assert (run.cost, run.cost_unknown_calls) == (FREE, 3)


@pytest.mark.timeout(60)
def test_the_first_calls_of_a_stage_use_the_slots_that_its_worker_got(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a renewal, for which they waited half a second."""
    monkeypatch.setattr("curation.runs.engine.llm_stage.SHARE_SECONDS", 3600.0)
    run = asked(make_asked(server), n=8)
    assert (run.state, server.counts().asked) == (RunState.SUCCEEDED, 8)
