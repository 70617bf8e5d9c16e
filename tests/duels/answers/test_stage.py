from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from curation.duels.models import Answer, Duel
from curation.duels.prompts.exclusions import exclude
from curation.llm.client.completion import CompletionRequest
from curation.llm.client.errors import Refused
from curation.llm.models import Endpoint
from curation.projects.models import InstructionsOverride
from curation.runs.control import retry_failed
from curation.runs.models import Call, ItemState
from curation.samples.models import Sample
from curation.web.problems import Invalid
from judging.messages import ToolCall
from tests.driving import end
from tests.duels.running import CHALLENGER, KING, Models, Says, completion, make_arena, run_to_end, start
from tests.factories import make_prompt, make_user, set_history

pytestmark = pytest.mark.django_db(transaction=True)
BROKEN: ToolCall = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"comm'}}
TOOL_CALL = "<|tool_calls_section_begin|>functions.bash:0"


def test_each_prompt_gets_one_answer_with_its_facts(models: Models) -> None:
    project, prompts = make_arena(prompts=2)
    run = run_to_end(project, "king", model="king")
    assert (run.state, run.items_done) == ("succeeded", 2)
    answers = list(Answer.objects.order_by("prompt_id"))
    assert [answer.prompt for answer in answers] == prompts
    one = answers[0]
    assert (one.text.text, one.refusal, one.side, one.model) == (KING, "", "king", "king")
    assert (one.has_thought, one.blocks, one.commands, one.action_style) == (True, 1, 1, "explore")
    assert one.call is not None and one.call.instructions_hash == one.instructions_hash
    assert one.leak_score is None


def test_a_refused_answer_is_stored_with_its_reason_and_retried(models: Models) -> None:
    replies: Iterator[Says] = iter([TOOL_CALL, completion("THOUGHT: I was cut", finish="length"), KING])
    models.says["king"] = lambda request: next(replies)
    project, _ = make_arena(prompts=1)
    run = run_to_end(project, "king", model="king")
    assert run.state == "succeeded"
    kept = Answer.objects.order_by("attempt").values_list("attempt", "refusal")
    assert list(kept) == [(1, "tool_call_token"), (2, "truncated"), (3, "")]
    assert [request.attempt for request in models.requests("king")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (TOOL_CALL, "tool_call_token"),
        (completion("", thinking="thinking all the way", finish="length"), "truncated"),
        (replace(completion('[tool call c] bash {"comm', finish="tool_calls"), tool_calls=[BROKEN]), "broken_call"),
    ],
)
def test_answers_in_the_wrong_format_are_never_judged(models: Models, said: Says, reason: str) -> None:
    project, prompts = make_arena(prompts=1)
    other = make_prompt(project, instance_id=prompts[0].instance_id)

    def reply(request: CompletionRequest) -> Says:
        return said if "the first of all" in str(request.messages) else KING

    models.says["king"] = reply
    set_history(other, [{"role": "user", "content": "This is the first of all."}])
    run = run_to_end(project, attempts=2)
    failed = run.items.get(state=ItemState.FAILED)
    assert (failed.stage, failed.target_id) == ("king", other.pk)
    assert "(2 tries)" in failed.reason
    assert list(Answer.objects.filter(prompt=other, side="king").values_list("refusal", flat=True)) == [reason] * 2
    assert [duel.prompt for duel in Duel.objects.all()] == prompts
    assert run.result["done"] == 1
    assert run.result["skipped"]["king"] == {failed.reason: 1}


def test_retrying_a_refused_answer_calls_the_model_again(models: Models) -> None:
    models.says["king"] = lambda request: TOOL_CALL if request.attempt <= 3 else KING
    project, _ = make_arena(prompts=1)
    run = run_to_end(project, "king", model="king")
    assert (run.state, run.items_failed, len(models.asked)) == ("failed", 1, 3)
    retry_failed(run=run, user=make_user())
    run = end(run)
    assert (run.state, run.items_failed, run.items_done, len(models.asked)) == ("succeeded", 0, 1, 4)
    assert list(Answer.objects.order_by("attempt").values_list("attempt", "refusal"))[2:] == [
        (3, "tool_call_token"),
        (4, ""),
    ]


def test_an_accepted_answer_is_not_requested_again(models: Models) -> None:
    project, _ = make_arena(prompts=3)
    run_to_end(project, "king", model="king")
    make_prompt(project)
    again = run_to_end(project, "king", model="king")
    assert (again.items_total, again.items_done, again.items_skipped) == (4, 1, 3)
    assert len(models.asked) == 4
    (reason,) = again.result["skipped"]["king"]
    assert reason.startswith("answered already")


@pytest.mark.parametrize("changed", ["instructions", "temperature", "model", "endpoint's parameters"])
def test_a_change_that_affects_the_answer_requests_a_new_one(models: Models, changed: str) -> None:
    project, _ = make_arena(prompts=1)
    run_to_end(project, "king", model="king")
    if changed == "instructions":
        InstructionsOverride.objects.create(project=project, name="king", version=1, text="Be brief.", sha256="1" * 64)
    elif changed == "temperature":
        project.settings_json |= {"generation": {"temperature": 0.1}}
        project.save()
    elif changed == "model":
        Endpoint.objects.filter(name="king").update(model="fake/king-2")
    else:
        Endpoint.objects.filter(name="king").update(params={"top_p": 0.5})
    run_to_end(project, "king", model="king")
    assert len(models.asked) == 2
    assert Answer.objects.filter(refusal="").count() == 2


def test_parameters_of_an_endpoint_override_the_projects_defaults(models: Models) -> None:
    project, _ = make_arena(prompts=1)
    Endpoint.objects.filter(name="king").update(params={"temperature": 1, "max_tokens": 16000})
    run_to_end(project, "king", model="king")
    assert models.requests("king")[0].params == {"temperature": 1, "max_tokens": 16000}


def test_fresh_requests_new_answers_and_duels_use_the_newest(models: Models) -> None:
    project, _ = make_arena(prompts=1)
    run_to_end(project)
    models.says["king"] = lambda request: KING.replace("-la", "-R")
    run = run_to_end(project, fresh=True)
    duel = Duel.objects.get(run=run)
    assert duel.king is not None and "-R" in duel.king.text.text
    assert Answer.objects.filter(side="king", refusal="").count() == 2


def test_a_prompt_without_a_record_has_a_king_but_no_challenger(models: Models) -> None:
    project, prompts = make_arena(prompts=2)
    lonely = make_prompt(project)
    nameless = make_prompt(project, instance_id="")
    run = run_to_end(project)
    kings = set(Answer.objects.filter(side="king").values_list("prompt_id", flat=True))
    assert kings == {prompt.pk for prompt in (*prompts, lonely, nameless)}
    assert set(Answer.objects.filter(side="challenger").values_list("prompt_id", flat=True)) == {p.pk for p in prompts}
    assert run.result["skipped"]["challenger"] == {"no pull-request record: it cannot be challenged": 2}
    assert (run.result["done"], run.state) == (2, "succeeded")
    alone = run_to_end(project, "challenger", model="challenger", fresh=True)
    assert alone.result["skipped"]["challenger"] == {"no pull-request record: it cannot be challenged": 2}


def test_every_stage_skips_excluded_instances(models: Models) -> None:
    project, prompts = make_arena(prompts=3)
    run_to_end(project)
    exclude(project=project, rows=[(prompts[0].instance_id, "broken environment")], user=make_user())
    asked = len(models.asked)
    for kind, params in (("king", {"model": "king"}), ("challenger", {"model": "challenger"})):
        run = run_to_end(project, kind, fresh=True, **params)
        assert set(run.items.values_list("target_id", flat=True)) == {prompt.pk for prompt in prompts[1:]}
    judged = run_to_end(project, "judge", fresh=True)
    assert judged.result["done"] == 2
    assert len(models.asked) == asked + 2 + 2 + 2 * 3 * 2
    rescored = run_to_end(project, "rescore")
    left = Duel.objects.exclude(prompt=prompts[0]).count()
    assert (rescored.result["done"], rescored.result["exclusions"]) == (left, 1)


def test_several_samples_per_side_are_paired_by_sample(models: Models) -> None:
    models.says["king"] = lambda request: f"{KING}\n{request.sample_index}"
    models.says["challenger"] = lambda request: f"{CHALLENGER}\n{request.sample_index}"
    project, _ = make_arena(prompts=2, judges=("judge-a",))
    run = run_to_end(project, samples=3)
    duels = list(Duel.objects.select_related("king__text", "challenger__text"))
    assert len(duels) == run.result["done"] == 6
    for duel in duels:
        assert duel.king is not None
        assert duel.king.sample_index == duel.challenger.sample_index
        assert duel.king.text.text[-1] == duel.challenger.text.text[-1] == str(duel.king.sample_index)


def test_thinking_is_stored_separately_and_not_counted_as_the_answer(models: Models) -> None:
    models.says["king"] = lambda request: completion(KING, thinking="SECRET-THOUGHTS " * 50)
    project, _ = make_arena(prompts=1)
    run_to_end(project)
    answer = Answer.objects.select_related("text").get(side="king")
    assert answer.text.text == KING and answer.text.thinking.startswith("SECRET-THOUGHTS")
    assert answer.tokens == -(-len(KING) // 4)
    assert all("SECRET-THOUGHTS" not in models.text_sent(judge) for judge in ("judge-a", "judge-b", "judge-c"))
    assert "SECRET-THOUGHTS" not in Sample.objects.get().text.body


def test_only_the_challenger_is_shown_the_record(models: Models) -> None:
    project, prompts = make_arena(prompts=1)
    record = project.pull_requests.get()
    record.files = ["billing/secret_place.py"]
    record.save()
    record.text.issue, record.text.description = "The secret issue", "The secret description"
    record.text.save()
    run_to_end(project)
    hidden = ("Round totals half to even", "quantise(total)", "secret_place.py", "secret issue", "secret description")
    assert all(part in models.text_sent("challenger") for part in hidden)
    for name in ("king", "judge-a"):
        assert not any(part in models.text_sent(name) for part in hidden)
    for name in ("king", "challenger"):
        roles = [message["role"] for message in models.requests(name)[0].messages]
        assert roles == ["system", "user"]
        assert prompts[0].text.history[0]["content"] in models.text_sent(name)


def test_a_leak_is_marked_in_the_answer_and_keeps_the_duel_out_of_final(models: Models) -> None:
    models.says["challenger"] = lambda request: CHALLENGER + "\nIt must call quantise_half_even."
    project, _ = make_arena(prompts=1)
    record = project.pull_requests.get()
    record.text.patch = "+    return quantise_half_even(total)"
    record.text.save()
    run = run_to_end(project)
    duel = Duel.objects.select_related("sample").get()
    (span,) = duel.challenger.leak_spans
    assert duel.challenger.text.text[span["start"] : span["end"]] == "quantise_half_even" == span["token"]
    assert span["place"] == "patch" and duel.challenger.leak_score
    assert (duel.score, duel.bucket, duel.flag_names) == (100.0, "refined", ["leak"])
    assert Sample.objects.get().bucket == "refined"
    assert run.result["buckets"] == {"final": 0, "refined": 1, "defeat": 0, "unparsed": 0}


def test_an_endpoint_error_fails_the_item_and_its_cost_stays_recorded(models: Models) -> None:
    def reply(request: CompletionRequest) -> str | Exception:
        return Refused("the context is too long") if "first" in str(request.messages) else KING

    models.says["king"] = reply
    project, _ = make_arena(prompts=1)
    Endpoint.objects.filter(name="king").update(price_in=Decimal(1), price_out=Decimal(1))
    make_prompt(project, history=[{"role": "user", "content": "This is the first."}])
    run = run_to_end(project, "king", model="king")
    assert (run.state, run.items_failed) == ("succeeded", 1)
    assert run.result["skipped"] == {"king": {"king: the context is too long": 1}}
    assert run.cost == Decimal("0.00011") and Call.objects.count() == 2


def test_text_that_no_database_can_store_stays_readable(models: Models) -> None:
    models.says["king"] = lambda request: KING + "\0\ud800"
    project, _ = make_arena(prompts=1)
    run_to_end(project, "king", model="king")
    assert Answer.objects.get().text.text.startswith(KING)


@pytest.mark.parametrize("kind", ["king", "challenger"])
def test_an_invalid_launch_is_refused_with_the_path_of_the_error(kind: str) -> None:
    project, _ = make_arena(prompts=1)
    refused_params: list[tuple[dict[str, Any], str]] = [
        ({"model": "nobody"}, "params.model"),
        ({}, "params.model"),
        ({"model": "king", "samples": 0}, "params.samples"),
        ({"model": "king", "attempts": 11}, "params.attempts"),
        ({"model": "king", "filter": {"colour": "red"}}, "params.filter.colour"),
        ({"model": "king", "filter": {"bucket": "best"}}, "params.filter.bucket"),
        ({"model": "king", "misspelt": 1}, "params.misspelt"),
    ]
    for params, path in refused_params:
        with pytest.raises(Invalid) as refused:
            start(project, kind, **params)
        assert [error.path for error in refused.value.errors] == [path]
    assert not project.runs.exists()


def test_a_filter_narrows_the_prompts(models: Models) -> None:
    project, prompts = make_arena(prompts=3)
    run = run_to_end(project, "king", model="king", filter={"instance_id": [prompts[0].instance_id]})
    assert [item.target_id for item in run.items.all()] == [prompts[0].pk]
    run_to_end(project)
    Sample.objects.filter(duel__prompt=prompts[1]).update(bucket="defeat")
    run = run_to_end(project, "king", model="king", filter={"bucket": "defeat"}, fresh=True)
    assert [item.target_id for item in run.items.all()] == [prompts[1].pk]
