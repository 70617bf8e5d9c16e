"""Who reads for leaks where nobody is named, and what a run says that was not read."""

import json
from typing import Any

import pytest
from django.test import Client

from curation.duels.answers.leaks import settle_reader
from curation.duels.models import Answer, Duel
from curation.duels.verdict.leak_figures import leak_lines, leak_results
from curation.llm.client.errors import Refused
from curation.llm.models import Endpoint
from curation.projects.models import Project, Role
from curation.runs.kinds import kind_of
from curation.runs.launch import estimate
from curation.runs.models import Run
from curation.samples.models import Sample
from tests.duels.running import Models, Reply, fair, make_arena, run_to_end
from tests.factories import make_member, make_project, make_run

pytestmark = pytest.mark.django_db(transaction=True)
QUOTE = {"answer": "I read the part in question", "place": "title", "record": "Round totals half to even"}
PARAMS = {"king_model": "king", "challenger_model": "challenger"}


def make_default_arena(
    prompts: int = 1, judges: tuple[str, ...] = ("judge-a", "judge-b"), **generation: Any
) -> Project:
    settings = {"panel": {"judges": list(judges)}, "generation": {"read_leaks": True, **generation}}
    return make_arena(prompts=prompts, judges=judges, settings=settings)[0]


def reads(*findings: dict[str, str]) -> Reply:
    """A judge that also reads for leaks."""
    judge = fair()
    return lambda request: json.dumps({"findings": list(findings)}) if is_reading(request) else judge(request)


def is_reading(request: Any) -> bool:
    return "<record" in str(request.messages[-1]["content"])


def readings(models: Models, name: str) -> list[Any]:
    return [request for request in models.requests(name) if is_reading(request)]


def report_of(client: Client, run: Run) -> tuple[str, str, Any]:
    """The run's page, `report.md` and the run in REST."""
    client.force_login(make_member(run.project, role=Role.ADMIN))
    page = client.get(f"/p/{run.project.slug}/runs/{run.pk}/").content.decode()
    report = b"".join(client.get(f"/api/v1/runs/{run.pk}/report.md").streaming_content).decode()  # type: ignore[attr-defined]
    return page, report, client.get(f"/api/v1/runs/{run.pk}").json()


def test_a_judge_to_spare_reads_and_its_finding_holds_the_duel_out_of_final(models: Models) -> None:
    models.says["judge-a"] = reads(QUOTE)
    run = run_to_end(make_default_arena())
    assert (len(readings(models, "judge-a")), len(readings(models, "judge-b"))) == (1, 0)
    assert Duel.objects.get().flag_names == ["leak_reader"]
    assert (Sample.objects.get().score, Sample.objects.get().bucket) == (100.0, "refined")
    assert (run.params["leak_reader"], run.result["leak_check"], run.result["leak_findings"]["unread"]) == (
        "judge-a",
        "read",
        0,
    )


def unread(request: Any) -> Any:
    """Judges, and gives no reading."""
    return "I would rather not say." if is_reading(request) else fair()(request)


def test_a_duel_that_the_reader_was_to_read_and_did_not_is_held_out_of_final(models: Models) -> None:
    models.says["judge-a"] = unread
    run = run_to_end(make_default_arena())
    assert run.result["leak_check"] == "incomplete"
    assert Duel.objects.get().flag_names == ["leak_unread"]
    assert (Sample.objects.get().score, Sample.objects.get().bucket) == (100.0, "refined")


@pytest.mark.parametrize(
    ("names", "change"),
    [
        (["judge-a"], {"model": "fake/king"}),
        (["judge-a"], {"model": "fake/challenger"}),
        (["challenger", "judge-a"], {"family": "qwen"}),
    ],
)
def test_a_judge_with_the_model_or_the_family_of_an_answer_is_not_to_spare(
    names: list[str], change: dict[str, str]
) -> None:
    project = make_default_arena()
    Endpoint.objects.filter(project=project, name__in=names).update(**change)
    given = {"judges": ("judge-a", "judge-b"), "generators": ("challenger", "king")}
    assert settle_reader(project, None, **given) == "judge-b"


def test_a_run_without_a_model_to_spare_says_that_only_the_lint_read(models: Models, client: Client) -> None:
    project = make_default_arena(judges=("judge-a",))
    Endpoint.objects.filter(project=project, name="judge-a").update(model="fake/challenger")
    run = run_to_end(project)
    assert models.requests("judge-a") and not readings(models, "judge-a")
    page, report, out = report_of(client, run)
    assert "Leaks: lint only." in page and "Leaks: lint only." in report
    assert (out["result"]["leak_check"], out["result"]["leak_findings"]["unread"]) == ("lint only", 1)
    assert Duel.objects.get().flag_names == []


def test_a_run_may_do_without_a_reader_and_the_run_that_judges_its_answers_says_so(models: Models) -> None:
    project = make_default_arena()
    run = run_to_end(project, leak_reader="none")
    assert not readings(models, "judge-a")
    assert (run.params["leak_reader"], run.result["leak_check"]) == ("none", "lint only")
    judged = run_to_end(project, "judge", judges=["judge-b"])
    assert (judged.result["leak_check"], judged.result["leak_findings"]["unread"]) == ("lint only", 1)


def test_a_challenger_run_is_read_by_the_projects_panel(models: Models) -> None:
    models.says["judge-a"] = reads(QUOTE)
    run = run_to_end(make_default_arena(), "challenger", model="challenger")
    assert Answer.objects.get().reader_flag
    assert run.result["leak_check"] == "read"


def test_what_a_reader_fails_to_read_is_counted_as_not_read(models: Models, client: Client) -> None:
    judge = fair()
    models.says["judge-a"] = lambda request: Refused("no") if is_reading(request) else judge(request)
    run = run_to_end(make_default_arena(prompts=2))
    assert [answer.reading["state"] for answer in Answer.objects.filter(side="challenger")] == ["failed", "failed"]
    page, report, out = report_of(client, run)
    duel = client.get(f"/p/{run.project.slug}/duels/{Duel.objects.earliest('id').pk}/").content.decode()
    assert "not read for leaks in meaning" in duel
    for text in (page, report):
        assert "Leaks: incomplete, 2 of 2 not read." in text
    assert (out["result"]["leak_check"], out["result"]["leak_findings"]["unread"]) == ("incomplete", 2)

    models.says["judge-a"] = reads()
    again = run_to_end(run.project)
    assert (again.result["leak_check"], again.result["leak_findings"]["unread"]) == ("read", 0)


def test_a_judge_that_answers_every_question_with_a_verdict_is_not_asked_for_ever(models: Models) -> None:
    models.says["judge-a"] = models.says["judge-b"] = lambda request: json.dumps(
        {**dict.fromkeys(("correctness", "grounding", "progress", "protocol", "efficiency"), 0), "reason": "same"}
    )
    project = make_default_arena(prompts=12)
    Endpoint.objects.filter(project=project).update(max_concurrency=1)
    run = run_to_end(project)
    assert (run.state, run.result["leak_check"], run.result["leak_findings"]["unread"]) == (
        "succeeded",
        "incomplete",
        12,
    )
    states = list(Answer.objects.filter(side="challenger").values_list("reading__state", flat=True))
    assert set(states) <= {"unparsed", "not_asked"}
    assert max(request.attempt for request in readings(models, "judge-a")) == 3


def test_a_flagged_answer_keeps_its_flag_when_another_judge_would_read(models: Models) -> None:
    models.says["judge-a"] = reads(QUOTE)
    models.says["judge-b"] = reads()
    project = make_default_arena()
    run_to_end(project)
    run_to_end(project, judges=["judge-b"])
    assert Answer.objects.get(side="challenger").reader_flag and not readings(models, "judge-b")


def test_the_estimate_counts_the_readings_and_says_who_reads(models: Models) -> None:
    project = make_default_arena(prompts=4)
    Endpoint.objects.filter(project=project).update(price_in=1, price_out=1)
    read = estimate(project=project, kind="duel", params=PARAMS)
    lint = estimate(project=project, kind="duel", params={**PARAMS, "leak_reader": "none"})
    assert read.calls - lint.calls == 4 and read.cost is not None and lint.cost is not None and read.cost > lint.cost
    assert any("judge-a reads each challenger answer" in note for note in read.notes)
    assert any("Leaks: lint only" in note for note in lint.notes)
    small = estimate(project=project, kind="duel", params=PARAMS, budget=lint.cost)
    assert any("does not suffice" in note for note in small.notes)
    assert not any("does not suffice" in note for note in read.notes)


def test_the_launch_form_says_lint_only_before_the_launch(models: Models, client: Client) -> None:
    project = make_default_arena(judges=("judge-a",))
    Endpoint.objects.filter(project=project, name="judge-a").update(model="fake/king")
    client.force_login(make_member(project, role=Role.ADMIN))
    said = client.post(f"/p/{project.slug}/runs/new/estimate/?kind=duel", {**PARAMS, "judges": ["judge-a"]})
    assert "Leaks: lint only." in said.content.decode()


def test_without_an_answer_nothing_is_checked() -> None:
    run = make_run(make_project(), kind="challenger", params={"model": "small", "leak_reader": "none"})
    run.result = leak_results(run)
    assert run.result["leak_check"] == "no answers"
    said = "0 answers of small; leaks: not checked, because the challenger has no answers."
    assert kind_of(run.kind).conclude(run) == said
    assert list(leak_lines(run.result)) == ["Leaks: not checked, because the challenger has no answers."]
