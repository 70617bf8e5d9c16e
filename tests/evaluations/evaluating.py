"""Helpers for tests of evaluations: splits by the real import, models at the stub server, runs done as by a worker."""

import json
from collections.abc import Sequence
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from curation.evaluations.models import EvaluatedModel, Evaluation, Split
from curation.imports.sources.stored import store_upload
from curation.llm.models import Endpoint
from curation.projects.models import Project, Role
from curation.runs.launch import launch
from curation.runs.models import Run
from tests.driving import end
from tests.exports.pages.test_api import Script
from tests.factories import make_endpoint, make_member, make_project
from tests.model_server import ModelServer
from tests.parts import shared_data

Row = dict[str, Any]
ANSWERS = ["aws s3 ls", "aws iam list-users --debug", "I would list the queues.", "aws ec2 describe-vpcs", "nothing"]
THINGS = (
    "buckets",
    "users",
    "queues",
    "networks",
    "topics",
    "tables",
    "keys",
    "roles",
    "alarms",
    "stacks",
    "images",
    "logs",
)
COMMANDS = ("aws s3 ls", "aws iam list-users", "aws sqs list-queues", "aws ec2 describe-vpcs", "aws sns list-topics")


def make_rows(n: int = 5, *, tiers: Sequence[str] = ("easy",), tasks: int = 0) -> list[Row]:
    """Rows in the published layout: a task, its expected command, a tier and a source."""
    rows = []
    for number in range(n):
        command = COMMANDS[number % len(COMMANDS)]
        thing = f"{THINGS[number % len(THINGS)]}{' again' * (number // len(THINGS))}"
        prompt = f"TASK: look at the {thing}.\n\nStep: {number}\nLast reward: 0.{number}\n\nSend a command."
        messages = [{"role": "user", "content": prompt}, {"role": "assistant", "content": command}]
        tier = tiers[number % len(tiers)]
        task = number % tasks if tasks else number
        rows.append({"task_id": task, "difficulty": tier, "source": "first", "messages": messages})
    return rows


def upload(project: Project, rows: Sequence[Row], name: str = "val.jsonl") -> str:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    return store_upload(project=project, file=ContentFile(text.encode(), name), name=name)


def make_split(project: Project, rows: Sequence[Row] | None = None, name: str = "val.jsonl") -> Split:
    key = upload(project, make_rows() if rows is None else rows, name)
    run = end(launch(project=project, kind="import", params={"kind": "eval_rows", "upload": key}, user=None))
    assert run.state == "succeeded", run.error
    return Split.objects.get(pk=run.result["split"])


def published(name: str) -> list[Row]:
    """Rows of the published data: `val` or `train`."""
    return [json.loads(line) for line in shared_data("aws_cli", f"{name}.jsonl").open()]


def at_server(project: Project, server: ModelServer, name: str, **values: Any) -> Endpoint:
    given = {"model": f"openai/{name}", "api_base": server.api_base, "max_concurrency": 16}
    return make_endpoint(project, name, **{**given, **values})


def says(server: ModelServer, model: str, rows: Sequence[Row], answers: Sequence[str], **how: Any) -> None:
    """The model gives these answers to these rows."""
    prompts = [row["messages"][-2]["content"] for row in rows]
    server.behave(model, replies=dict(zip(prompts, answers, strict=True)), **how)


def evaluate(project: Project, split: Split, models: Sequence[str], **params: Any) -> Evaluation:
    given = {"models": list(models), "split": str(split.pk), **params}
    run = end(launch(project=project, kind="evaluate", params=given, user=None))
    assert run.state == "succeeded", run.error
    return Evaluation.objects.get(run=run)


def model_in(evaluation: Evaluation, name: str) -> EvaluatedModel:
    return evaluation.models.select_related("evaluation__run", "evaluation__split__project").get(name=name)


def done(script: Script, answer: Any) -> dict[str, Any]:
    """The run of a 202, driven to its end."""
    assert answer.status_code == 202, answer.content
    assert answer.headers["Location"] == f"/api/v1/runs/{answer.json()['id']}"
    end(Run.objects.get(pk=answer.json()["id"]))
    found: dict[str, Any] = script("get", f"/runs/{answer.json()['id']}").json()
    assert found["state"] == "succeeded", found
    return found


def uploaded(script: Script, rows: list[dict[str, Any]]) -> str:
    """The split of an upload."""
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    form = {"kind": "eval_rows", "file": SimpleUploadedFile("val.jsonl", text)}
    answer = Client().post(f"/api/v1{script.here}/imports", form, headers=script.headers)
    run = done(script, answer)
    split: str = run["result"]["split"]
    return split


def two_models(script: Script, server: ModelServer, rows: list[dict[str, Any]]) -> None:
    says(server, "good", rows, [row["messages"][-1]["content"] for row in rows])
    says(server, "bad", rows, ["no idea"] * len(rows))
    for name in ("good", "bad"):
        at_server(script.project, server, name)


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


def live(project: Project, *models: str, **params: Any) -> Run:
    """Live episodes of these models."""
    given = {"kind": "live", "models": list(models), "family": "shop", **params}
    return end(launch(project=project, kind="evaluate", params=given, user=None))


def figures(run: Run) -> dict[str, dict[str, Any]]:
    return {row["model"]: row for row in run.result["models"]}


def check(project: Project, split: Split, **against: str) -> Run:
    """A check of the split for contamination."""
    params = {"split": str(split.pk), **against}
    return end(launch(project=project, kind="contamination", params=params, user=None))


def evaluated(script: Script, split: str, *models: str, **params: object) -> str:
    """The evaluation of these models on the split, started by REST."""
    body = {"models": list(models), "split": split, **params}
    run = done(script, script("post", f"{script.here}/evaluations", body))
    evaluation: str = run["result"]["evaluation"]
    return evaluation
