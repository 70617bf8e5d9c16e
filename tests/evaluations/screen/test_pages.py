"""The pages a curator uses: splits, a launch, one evaluation, its log, a comparison, the leaderboard."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from curation.evaluations.models import EvaluatedModel, Evaluation, Screened, Split
from curation.projects.models import Project, Role
from curation.runs.launch import launch
from curation.runs.models import Run
from tests.evaluations.evaluating import (
    at_server,
    end,
    evaluate,
    make_rows,
    make_split,
    model_in,
    says,
    upload,
)
from tests.factories import make_endpoint, make_member, make_project
from tests.model_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)
ANSWERS = ["aws s3 ls", "aws iam list-users --debug", "I would list the queues.", "aws ec2 describe-vpcs", "nothing"]


def signed_in(client: Client, role: str = Role.ADMIN) -> Project:
    project = make_project()
    client.force_login(make_member(project, role=role))
    return project


def page(client: Client, project: Project, name: str, *args: object, query: str = "") -> str:
    answer = client.get(reverse(name, args=[project.slug, *args]) + query)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def screened(project: Project, server: ModelServer) -> Evaluation:
    """Two models over five rows: `good` is right everywhere, `bad` as in ANSWERS."""
    rows = make_rows(tiers=("easy", "hard"))
    split = make_split(project, rows)
    says(server, "good", rows, [row["messages"][-1]["content"] for row in rows])
    says(server, "bad", rows, ANSWERS)
    for name in ("good", "bad"):
        at_server(project, server, name)
    return evaluate(project, split, ["bad", "good"])


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
    assert Screened.objects.filter(evaluation=evaluation).count() == 1
    assert "val.jsonl" in page(client, project, "evaluation-list")


def test_the_form_says_what_is_wrong_beside_its_field(client: Client) -> None:
    project = signed_in(client)
    make_endpoint(project, "echo", model="scripted/echo")
    url = reverse("evaluation-new", args=[project.slug])
    refused = client.post(url, {"models": ["echo"], "family": "aws"})
    assert refused.status_code == 422 and "Give a `split` or a `file`" in refused.content.decode()
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
    assert [bar["name"] for bar in figure["data"]][:3] == ["fmt", "+xtr", "exact"]
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
    call = Screened.objects.get(evaluation=evaluation, by__name="bad", mark="differs")
    opened = page(client, project, "evaluation-call", evaluation.pk, call.pk)
    assert "only in the answer" in opened and "--debug" in opened and "TASK: look at the users" in opened
    assert "Other models on this row" in opened and ">good<" in opened
    part = client.get(
        reverse("evaluation-call", args=[project.slug, evaluation.pk, call.pk]), headers={"HX-Request": "true"}
    ).content.decode()
    assert "<html" not in part and "--debug" in part


def test_answers_are_shown_harmless(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    rows = make_rows(1)
    says(server, "evil", rows, ["<script>alert(1)</script>\x1b[2J\u202eaws"])
    at_server(project, server, "evil")
    evaluation = evaluate(project, make_split(project, rows), ["evil"])
    call = Screened.objects.get()
    for shown in (
        page(client, project, "evaluation-calls", evaluation.pk),
        page(client, project, "evaluation-call", evaluation.pk, call.pk),
    ):
        assert "<script>alert" not in shown and "\x1b" not in shown and "\u202e" not in shown


def test_a_comparison_says_what_is_gained_and_can_be_downloaded(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    evaluation = screened(project, server)
    before, after = model_in(evaluation, "bad"), model_in(evaluation, "good")
    query = f"?before={before.pk}&after={after.pk}"
    shown = page(client, project, "evaluation-compare", query=query)
    assert "+60.0 pp" in shown and "Gains" in shown and "Nothing was lost." in shown
    gained = Screened.objects.get(by=after, row__number=1)
    assert reverse("evaluation-call", args=[project.slug, evaluation.pk, gained.pk]) in shown
    figure = client.get(reverse("compare-chart", args=[project.slug]) + query).json()
    assert [line["name"] for line in figure["data"]] == ["all rows", "easy", "hard"]
    same = client.get(reverse("evaluation-compare", args=[project.slug]) + f"?before={after.pk}&after={after.pk}")
    assert same.status_code == 422


def test_a_pinned_baseline_flags_what_became_worse(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    rows = make_rows(12)
    split = make_split(project, rows)
    says(server, "good", rows, [row["messages"][-1]["content"] for row in rows])
    says(server, "worse", rows, ["no idea"] * len(rows))
    for name in ("good", "worse"):
        at_server(project, server, name)
    evaluation = evaluate(project, split, ["good", "worse"])
    pin = reverse("baseline-pin", args=[project.slug])
    assert client.post(pin, {"model": model_in(evaluation, "good").pk}).status_code == 302
    assert model_in(evaluation, "worse").regressed and not model_in(evaluation, "good").regressed
    board = page(client, project, "leaderboard")
    assert "baseline" in board and "regressed" in board
    later = evaluate(project, split, ["worse"])
    assert model_in(later, "worse").regressed
    assert "regressed" in page(client, project, "evaluation-list")
    client.post(reverse("baseline-unpin", args=[project.slug]), {"split": split.pk})
    assert not EvaluatedModel.objects.filter(regressed=True).exists()


def test_a_check_stands_above_the_scores_and_sets_the_rows_apart(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    evaluation = screened(project, server)
    split = evaluation.split
    assert split is not None
    rows = make_rows(tiers=("easy", "hard"))
    moved = {
        **rows[0],
        "messages": [{"role": "user", "content": "TASK: look at the buckets.\n\nNow."}, rows[0]["messages"][1]],
    }
    text = "".join(json.dumps(row) + "\n" for row in (rows[3], moved)).encode()
    answer = client.post(
        reverse("split-check", args=[project.slug, split.pk]), {"file": SimpleUploadedFile("train.jsonl", text)}
    )
    assert answer.status_code == 302
    assert "A check is running" in page(client, project, "split-page", split.pk)
    end(Run.objects.get(kind="contamination"))
    shown = page(client, project, "evaluation-page", evaluation.pk)
    assert "2 of 5 rows of this split are in the training data" in shown
    assert shown.index("are in the training data") < shown.index("Figures by model")
    assert "Clean rows" in shown
    found = page(client, project, "split-page", split.pk, query="?level=task_answer")
    assert "Training row 2" in found and "Now." in found and found.count('id="row-') == 2
    exact = page(client, project, "split-page", split.pk, query="?level=exact")
    assert exact.count('id="row-') == 1


def test_a_viewer_reads_but_starts_nothing(client: Client) -> None:
    project = signed_in(client, Role.VIEWER)
    launch(
        project=project, kind="import", params={"kind": "eval_rows", "upload": upload(project, make_rows())}, user=None
    )
    split = Split.objects.get()
    for name, args in (("evaluation-list", []), ("split-list", []), ("split-page", [split.pk]), ("leaderboard", [])):
        page(client, project, name, *args)
    assert client.get(reverse("evaluation-new", args=[project.slug])).status_code == 403
    assert client.post(reverse("split-check", args=[project.slug, split.pk])).status_code == 403
    assert client.post(reverse("baseline-pin", args=[project.slug]), {"model": "1"}).status_code == 403
    client.force_login(make_member(make_project()))
    assert client.get(reverse("split-page", args=[project.slug, split.pk])).status_code == 404


@pytest.mark.parametrize(
    ("kind", "name"), [("evaluate", "evaluation-new"), ("split", "split-list"), ("contamination", "split-list")]
)
def test_a_launch_leads_to_the_page_that_is_made_for_it(client: Client, kind: str, name: str) -> None:
    project = signed_in(client)
    answer = client.get(reverse("run-new", args=[project.slug]), {"kind": kind})
    assert answer.headers["Location"] == reverse(name, args=[project.slug])


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


def test_the_form_says_what_it_would_cost(client: Client) -> None:
    project = signed_in(client)
    make_endpoint(project, "echo", model="scripted/echo", price_in=0, price_out=0)
    split = make_split(project, make_rows(5))
    url = reverse("evaluation-estimate", args=[project.slug])
    form = {"models": ["echo"], "family": "aws", "split": str(split.pk), "max_per_combo": "3"}
    said = client.post(url, form).content.decode()
    assert "$0.00" in said and '<span class="figure__value">3</span>' in said
    assert "Fill in the form" in client.post(url, {**form, "split": ""}).content.decode()
    assert not Run.objects.filter(kind="evaluate").exists()
