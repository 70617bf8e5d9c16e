"""The second reader: it reads the answers that the lint passed, is believed if it quotes, counted and priced apart."""

import json
from typing import Any

import pytest

from curation.duels.models import Answer, Duel
from curation.llm.scripted import reply
from curation.projects.models import Project
from curation.runs.models import Call
from curation.samples.models import Sample
from curation.web.problems import Invalid
from judging.leaks.reader import parse_reading, reader_messages
from tests.duels.running import Models, make_arena, run_to_end
from tests.factories import make_endpoint
from tests.judging.leaks.test_lint import make_record

pytestmark = pytest.mark.django_db(transaction=True)
QUOTE = {"answer": "I read the part in question", "place": "description", "record": "waits a little between tries"}


def make_read_arena(prompts: int = 1) -> Project:
    project, made = make_arena(prompts=prompts, judges=("judge-a",))
    for record in project.pull_requests.select_related("text"):
        record.text.description = "The client now waits a little between tries."
        record.text.save()
    make_endpoint(project, "reader")
    project.settings_json["generation"] = {**project.settings_json.get("generation", {}), "leak_reader": "reader"}
    project.save()
    return project


def says(models: Models, *findings: dict[str, Any]) -> None:
    models.says["reader"] = lambda request: "Here: " + json.dumps({"findings": list(findings)})


def test_a_finding_with_quotes_is_a_flag_of_its_own_and_holds_the_duel_out_of_final(models: Models) -> None:
    says(models, QUOTE)
    project = make_read_arena()
    run = run_to_end(project)
    answer = Answer.objects.get(side="challenger")
    assert (answer.leak_flag, answer.reader_flag, answer.reading["state"]) == (False, True, "read")
    (found,) = answer.reading["findings"]
    assert answer.text.text[found["start"] : found["end"]] == QUOTE["answer"]
    assert (found["place"], found["reveals"]) == ("description", QUOTE["record"])
    assert Duel.objects.get().flag_names == ["leak_reader"]
    assert Sample.objects.get().bucket != "final"
    leaks = run.result["leak_findings"]
    assert (leaks["answers"], leaks["lint"], leaks["read"], leaks["reader"], leaks["reader_calls"]) == (1, 0, 1, 1, 1)
    assert Call.objects.filter(run=run, endpoint_name="reader").count() == 1
    sent = models.text_sent("reader")
    assert "waits a little between tries" in sent and answer.text.text in sent


@pytest.mark.parametrize(
    "change", [{"answer": "words that it never wrote"}, {"record": "not there"}, {"place": "issue"}]
)
def test_a_finding_whose_quotes_are_not_there_counts_as_none(models: Models, change: dict[str, str]) -> None:
    says(models, QUOTE | change)
    run = run_to_end(make_read_arena())
    assert Answer.objects.get(side="challenger").reader_flag is False
    assert (run.result["leak_findings"]["reader"], run.result["leak_findings"]["dropped"]) == (0, 1)


def test_a_reply_without_findings_is_asked_for_again_and_then_counted(models: Models) -> None:
    models.says["reader"] = lambda request: "I see nothing."
    run = run_to_end(make_read_arena())
    assert [request.attempt for request in models.requests("reader")] == [1, 2, 3]
    assert (run.result["leak_findings"]["unparsed"], run.result["leak_findings"]["read"]) == (1, 0)


def test_existing_answers_are_read_once_and_what_the_lint_flagged_is_not(models: Models) -> None:
    says(models, QUOTE)
    project = make_read_arena(prompts=2)
    generation = project.settings_json["generation"]
    project.settings_json["generation"] = {"read_leaks": False}
    project.save()
    run_to_end(project, "challenger", model="challenger")
    first = Answer.objects.order_by("pk").first()
    assert first is not None and models.requests("reader") == []
    Answer.objects.filter(pk=first.pk).update(leak_flag=True)
    project.settings_json["generation"] = generation
    project.save()

    run_to_end(project, "challenger", model="challenger")
    run_to_end(project, "challenger", model="challenger")

    assert len(models.requests("reader")) == 1
    assert Answer.objects.count() == 2
    assert list(Answer.objects.order_by("pk").values_list("reader_flag", flat=True)) == [False, True]


def test_the_scripted_reader_reads_like_a_model() -> None:
    record = make_record(description="Stragglers get a polite farewell frame.")
    messages = reader_messages(
        "Read.", ["The server hangs."], record, "THOUGHT: be polite to a straggler, farewell.", secret=b"secret"
    )
    said = reply("leak-reader", messages)
    reading = parse_reading(said.text, "THOUGHT: be polite to a straggler, farewell.", record)
    assert reading is not None and [leak.place for leak in reading.findings] == ["description"]
    honest = reply(
        "leak-reader",
        reader_messages("Read.", ["The server hangs."], record, "THOUGHT: look at the server.", secret=b"secret"),
    )
    assert honest.text == '{"findings": []}'


def test_an_unknown_reader_is_refused_at_the_launch(models: Models) -> None:
    project = make_read_arena()
    project.endpoints.filter(name="reader").delete()
    with pytest.raises(Invalid, match="reader"):
        run_to_end(project)


def test_a_reading_takes_the_last_object_and_tolerates_other_blanks() -> None:
    record = make_record(description="It waits\n  a little longer.")
    finding = {"answer": "be  patient", "place": "description", "record": "waits a little"}
    reply = '{"findings": []} no: ' + json.dumps({"findings": [finding]})
    reading = parse_reading(reply, "THOUGHT: be patient", record)
    assert reading is not None
    (leak,) = reading.findings
    assert (leak.token, leak.reveals) == ("be patient", "waits\n  a little")
    assert parse_reading('{"findings": 3}', "x", record) is None
