"""Evaluations in tests: a split by the real import, models at the stub server, runs driven as a worker would."""

import json
from collections.abc import Sequence
from typing import Any

from django.core.files.base import ContentFile

from curation.evaluations.models import EvaluatedModel, Evaluation, Split
from curation.imports.sources.stored import store_upload
from curation.llm.models import Endpoint
from curation.projects.models import Project
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.models import LIVE, Run
from tests.factories import make_endpoint
from tests.model_server import ModelServer
from tests.parts import shared_data

Row = dict[str, Any]
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


def end(run: Run, shards: int = 12) -> Run:
    """Drives the run as a worker would until it has ended."""
    for _ in range(shards):
        drive(run.pk)
        run.refresh_from_db()
        if run.state not in LIVE:
            return run
    raise AssertionError(f"run {run.pk} is {run.state} in stage {run.stage}")
