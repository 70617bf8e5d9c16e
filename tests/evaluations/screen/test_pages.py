"""The pages of evaluations and their splits."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from curation.evaluations.models import Evaluation, ScreenedAnswer
from curation.runs.models import Run
from tests.driving import end
from tests.evaluations.evaluating import (
    at_server,
    evaluate,
    make_rows,
    make_split,
    page,
    says,
    screened,
    signed_in,
)
from tests.factories import make_endpoint, make_project
from tests.model_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)


def test_empty_pages_say_what_to_do(client: Client) -> None:
    project = signed_in(client)
    assert "No evaluations yet" in page(client, project, "evaluation-list")
    assert "No splits yet" in page(client, project, "split-list")
    assert "Nothing to rank yet" in page(client, project, "leaderboard")


def test_the_form_takes_a_file_and_leads_to_the_evaluation(client: Client) -> None:
    project = signed_in(client)
    make_endpoint(project, "echo", model="scripted/echo")
    text = b"".join(json.dumps(row).encode() + b"\n" for row in make_rows(2))
    form = {"models": ["echo"], "family": "aws", "file": SimpleUploadedFile("val.jsonl", text), "max_per_combo": "1"}
    answer = client.post(reverse("evaluation-new", args=[project.slug]), form)
    evaluation = Evaluation.objects.get()
    assert answer.headers["Location"] == reverse("evaluation-page", args=[project.slug, evaluation.pk])
    waiting = page(client, project, "evaluation-page", evaluation.pk)
    assert "every 1s" in waiting and "No answer yet." in waiting
    end(evaluation.run)
    live = client.get(reverse("evaluation-live", args=[project.slug, evaluation.pk]))
    assert live.headers["HX-Refresh"] == "true" and "every 1s" not in live.content.decode()
    assert ScreenedAnswer.objects.filter(evaluation=evaluation).count() == 1
    assert "val.jsonl" in page(client, project, "evaluation-list")


def test_the_form_shows_an_error_beside_its_field(client: Client) -> None:
    project = signed_in(client)
    make_endpoint(project, "echo", model="scripted/echo")
    url = reverse("evaluation-new", args=[project.slug])
    refused = client.post(url, {"models": ["echo"], "family": "aws"})
    assert refused.status_code == 422 and "Give a “split” or a “file”" in refused.content.decode()
    assert client.post(url, {"models": ["nobody"], "family": "aws"}).status_code == 422
    assert not Run.objects.filter(kind="evaluate").exists()


def test_an_evaluation_shows_its_table_with_intervals_tiers_and_no_check(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    evaluation = screened(project, server)
    shown = page(client, project, "evaluation-page", evaluation.pk)
    assert "This split was never checked" in shown
    assert shown.index(">good<") < shown.index(">bad<")
    assert "By tier" in shown and "57–100" in shown  # Wilson, 5 of 5
    figure = client.get(reverse("evaluation-chart", args=[project.slug, evaluation.pk])).json()
    assert [bar["name"] for bar in figure["data"]][:3] == ["Command alone", "Command found", "Exact command"]
    run = page(client, project, "run-page", evaluation.run_id)
    assert f"Evaluation {evaluation.pk}" in run


def test_the_log_is_filtered_to_disagreements_and_opens_one_row(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    evaluation = screened(project, server)
    log = page(client, project, "evaluation-calls", evaluation.pk)
    assert log.count("data-row ") == 10 and "✓ exact" in log and "~ differs" in log and "✗ no command" in log
    apart = page(client, project, "evaluation-calls", evaluation.pk, query="?disagreements=true")
    assert apart.count("data-row ") == 6  # rows 2, 3 and 5, by both models
    only = page(client, project, "evaluation-calls", evaluation.pk, query="?mark=differs&model=bad")
    assert only.count("data-row ") == 1 and "list-users --debug" in only
    call = ScreenedAnswer.objects.get(evaluation=evaluation, by__name="bad", mark="differs")
    opened = page(client, project, "evaluation-call", evaluation.pk, call.pk)
    assert "only in the answer" in opened and "--debug" in opened and "TASK: look at the users" in opened
    assert "Other models on this row" in opened and ">good<" in opened
    part = client.get(
        reverse("evaluation-call", args=[project.slug, evaluation.pk, call.pk]), headers={"HX-Request": "true"}
    ).content.decode()
    assert "<html" not in part and "--debug" in part


def test_answers_are_escaped(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    rows = make_rows(1)
    says(server, "evil", rows, ["<script>alert(1)</script>\x1b[2J\u202eaws"])
    at_server(project, server, "evil")
    evaluation = evaluate(project, make_split(project, rows), ["evil"])
    call = ScreenedAnswer.objects.get()
    for shown in (
        page(client, project, "evaluation-calls", evaluation.pk),
        page(client, project, "evaluation-call", evaluation.pk, call.pk),
    ):
        assert "<script>alert" not in shown and "\x1b" not in shown and "\u202e" not in shown


def test_every_kind_on_the_launch_page_has_a_form(client: Client) -> None:
    project = signed_in(client)
    split = make_split(project, make_rows(2))
    launch = reverse("run-new", args=[project.slug])
    answer = client.get(launch, {"kind": "evaluate"})
    assert answer.headers["Location"] == reverse("evaluation-new", args=[project.slug])
    for kind, field in {"split": "export", "contamination": "training_split", "push": "repository"}.items():
        assert f'name="{field}"' in client.get(launch, {"kind": kind}).content.decode()
    form = {"split": str(split.pk), "training_split": str(make_split(project, make_rows(3)).pk)}
    assert client.post(f"{launch}?kind=contamination", form).status_code == 302
    assert Run.objects.get(kind="contamination").params["split"] == str(split.pk)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("chart.png", b"\x89PNG\r\n\x1a\n" + b"\x00" * 40, "a PNG image"),
        ("rows.csv", b"a,a\n1,2\n", "two columns with the name"),
    ],
)
def test_a_file_without_rows_is_refused_at_the_form(client: Client, name: str, content: bytes, said: str) -> None:
    project = signed_in(client)
    make_endpoint(project, "echo", model="scripted/echo")
    split = make_split(project, make_rows(2))
    runs = Run.objects.count()
    forms = {
        reverse("evaluation-new", args=[project.slug]): {"models": ["echo"], "family": "aws"},
        reverse("split-check", args=[project.slug, split.pk]): {},
    }
    for url, form in forms.items():
        refused = client.post(url, {**form, "file": SimpleUploadedFile(name, content)})
        assert refused.status_code == 422
        assert said in str(refused.context["form"].errors["file"])
    assert Run.objects.count() == runs


def test_an_evaluation_is_run_again_on_the_split_that_its_file_became(client: Client) -> None:
    project = signed_in(client)
    make_endpoint(project, "echo", model="scripted/echo")
    text = b"".join(json.dumps(row).encode() + b"\n" for row in make_rows(2))
    form = {"models": ["echo"], "family": "aws", "file": SimpleUploadedFile("val.jsonl", text), "max_tokens": "77"}
    client.post(reverse("evaluation-new", args=[project.slug]), form)
    run = Evaluation.objects.get().run
    assert run is not None
    again = client.get(f"{reverse('evaluation-new', args=[project.slug])}?from={run.pk}").content.decode()
    assert f'<option value="{run.result["split"]}" selected>' in again
    assert 'value="77"' in again and 'value="echo"' in again and "checked" in again


def test_the_command_launches_and_follows_an_evaluation(capsys: pytest.CaptureFixture[str]) -> None:
    project = make_project()
    make_endpoint(project, "echo", model="scripted/echo", price_in=0, price_out=0)
    split = make_split(project, make_rows(2))
    call_command(
        "run",
        "evaluate",
        project=project.slug,
        param=['models=["echo"]', f"split={split.pk}"],
        follow=True,
        inline=True,
        wait_timeout=60.0,
    )
    said = json.loads(capsys.readouterr().out)
    assert said["state"] == "succeeded" and said["result"]["models"][0]["n"] == 2


def test_the_form_shows_the_estimated_cost(client: Client) -> None:
    project = signed_in(client)
    make_endpoint(project, "echo", model="scripted/echo", price_in=0, price_out=0)
    split = make_split(project, make_rows(5))
    url = reverse("evaluation-estimate", args=[project.slug])
    form = {"models": ["echo"], "family": "aws", "split": str(split.pk), "max_per_combo": "3"}
    said = client.post(url, form).content.decode()
    assert ">$0<" in said and '<span class="figure__value">3</span>' in said
    assert "Fill in the form" in client.post(url, {**form, "split": ""}).content.decode()
    assert not Run.objects.filter(kind="evaluate").exists()
