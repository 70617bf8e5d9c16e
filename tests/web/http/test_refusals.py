"""Requests that REST refuses: a stranger's reach, a role's overreach, a bad file, a model that is not there.

The calls come from OpenAPI, so a new call is under test from its first day: its body is the example that is printed.
"""

import json
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from config.api import api
from curation.assignments.models import Assignment
from curation.duels.models import Duel, Exclusion, Prompt, Reign
from curation.evaluations.models import Episode, EpisodeText, EvaluatedModel, Evaluation, Experiment, Split
from curation.exports.models import Export, ExportFile, Round, SavedRecipe
from curation.guarantees.models import Audit, AuditSet, Guarantee
from curation.imports.models import SavedMapping
from curation.labels.models import Question
from curation.llm.models import Endpoint
from curation.notifications.models import Notification
from curation.predictions.models import ApprovalModel, Cluster, ClusteredSample, Prediction
from curation.projects.models import Deletion, Invitation, Project, Role
from curation.review.guarantees.sets import ROW, packed
from curation.review.models import Lease, Revision, Suggestion
from curation.runs.models import Call, Run
from curation.samples.models import Sample, SavedView
from curation.webhooks.models import Webhook
from tests.docs.test_openapi import example_of
from tests.driving import end
from tests.factories import make_bearer, make_duel, make_endpoint, make_member, make_project, make_trajectory, make_user

pytestmark = pytest.mark.django_db
JSON = "application/json"
DOCUMENT = api.get_openapi_schema()
# Calls that belong to no project, or only to the caller: no part of their address names a row, or one of their own.
OWN = {path for path in DOCUMENT["paths"] if "{" not in path and not path.startswith("/api/v1/samples/")}
OWN |= {path for path in DOCUMENT["paths"] if path.startswith(("/api/v1/tokens/", "/api/v1/notifications/"))}
OPEN = {"/api/v1/health", "/api/v1/ready", "/api/v1/metrics", "/api/v1/schemas/bundle.json"}
# POSTs that change nothing: the right to read is enough.
READING = {"/api/v1/projects/{slug}/exports/preview", "/api/v1/projects/{slug}/evaluations/try-reset"}
LOG = {"AuditEntry", "IdempotentResponse", "Token", "User", "Session"}
CALLS = [
    (method.upper(), path)
    for path, methods in DOCUMENT["paths"].items()
    if path not in OWN | OPEN
    for method in methods
]
WRITING = [(method, path) for method, path in CALLS if method not in {"GET", "HEAD"} and path not in READING]


@dataclass
class Rows:
    """One row of every kind that an address can name, in one project."""

    project: Project
    ids: dict[str, str]

    def address(self, path: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: self.value(path, found[1]), path)

    def value(self, path: str, part: str) -> str:
        """`{name}` is of what precedes it: …/models/{name}."""
        before = re.search(r"/([a-z]+)/\{name\}", path) if part == "name" else None
        return self.ids[before[1] if before and before[1] in self.ids else part]

    def body(self, method: str, path: str) -> Any:
        found = DOCUMENT["paths"][path][method.lower()].get("requestBody", {}).get("content", {}).get(JSON)
        text = json.dumps(example_of(found, DOCUMENT["components"]["schemas"])) if found else "{}"
        return json.loads(text.replace('"demo"', f'"{self.project.slug}"').replace("4711", self.ids["sample_id"]))


@pytest.fixture
def owner() -> User:
    return make_user()


@pytest.fixture
def rows(owner: User) -> Rows:
    project = make_project("acme", user=owner)
    recipe = {"formats": ["sft-messages"]}
    run = Run.objects.create(project=project, kind="export", state="succeeded", params={"recipe": recipe})
    duel = make_duel(project, run=run)
    export = Export.objects.create(project=project, run=run, recipe=recipe, ready=True)
    ExportFile.objects.create(export=export, name="manifest.json", stored_as="nowhere", sha256="0" * 64)
    make_endpoint(project, "judge-a")
    trajectory = make_trajectory(project)
    split = Split.objects.create(project=project, name="val.jsonl", rows_count=1)
    live = Run.objects.create(project=project, kind="evaluate", state="succeeded")
    evaluation = Evaluation.objects.create(project=project, run=live, kind="live", split=split)
    by = EvaluatedModel.objects.create(evaluation=evaluation, place=0, name="judge-a")
    episode = Episode.objects.create(evaluation=evaluation, by=by, key="seed 0")
    EpisodeText.objects.create(episode=episode)
    SavedRecipe.objects.create(project=project, name="weekly", document={"formats": ["dpo"]}, created_by=owner)
    Exclusion.objects.create(project=project, instance_id="acme__billing-17", reason="broken")
    view = SavedView.objects.create(project=project, name="Leaks", query="flags=leak", created_by=owner)
    hook = Webhook.objects.create(project=project, url="https://hooks.example.org/", events=["run.finished"], nonce="n")
    assert duel.sample is not None
    until = timezone.now() + timedelta(minutes=5)
    lease = Lease.objects.create(sample=duel.sample, reviewer=owner, swapped=False, until=until)
    tomorrow = timezone.now() + timedelta(days=1)
    invited = Invitation.objects.create(
        project=project, role="viewer", invited_by=owner, digest="", expires_at=tomorrow
    )
    asked = Call.objects.create(project=project, run=run, endpoint_name="judge-a", content_hash="0" * 64)
    deletion = Deletion.objects.create(noun="run", target_id=1, project_id=project.pk, label="run 1")
    reign = Reign.objects.create(project=project, model="judge-a", margin=5.0, lcb=1.0)
    rollout = Run.objects.create(project=project, kind="rollout", state="succeeded", params={"model": "judge-a"})
    rounds = Round.objects.create(project=project, chain=1, operator="judge-a", rollout=rollout, formats=["dpo"])
    revision = Revision.objects.create(sample=duel.sample, number=1, author=owner, text="THOUGHT: I look first.")
    told = Notification.objects.create(user=owner, project=project, kind="mention", text="x", link="/")
    question = Question.objects.create(project=project, name="error_type", title="What is wrong?", kind="text")
    draft = Suggestion.objects.create(
        sample=duel.sample, run=rollout, asked_by=owner, model="judge-a", outcome="draft", text="THOUGHT: I read it."
    )
    experiment = Experiment.objects.create(project=project, name="SFT on export 1")
    assignment = Assignment.objects.create(project=project, created_by=owner)
    learned = Run.objects.create(project=project, kind="predict", state="running")
    model = ApprovalModel.objects.create(project=project, run=learned, version=1, seed=0)
    SavedMapping.objects.create(project=project, name="ours", created_by=owner)
    promise = {"score": "score", "size": 1, "alpha": 0.5, "delta": 0.5, "seed": 1, "set_sha256": "0" * 64, "samples": 2}
    promise |= {"drawn": 1, "extensions": 1}
    audit = Audit.objects.create(project=project, created_by=owner, levels=[[0.0, 2]], **promise)
    AuditSet.objects.create(audit=audit, data=packed(np.array([(duel.sample_id, 1, 0.0)], dtype=ROW)))
    made = {"created_by": owner, "threshold": 0.0, "batch": "g", "samples": 1, "finished": True}
    guarantee = Guarantee.objects.create(project=project, audit=audit, **made)
    reasons = [["score", 70.0, 0.4]]
    Prediction.objects.create(sample=duel.sample, model=model, probability=0.8312, reasons=reasons)
    cluster = Cluster.objects.create(project=project, run=learned, of="failures", words=["timeout"], size=1)
    ClusteredSample.objects.create(cluster=cluster, sample=duel.sample, place=0)
    ids = {
        "assignment_id": str(assignment.pk), "audit_id": str(audit.pk), "guarantee_id": str(guarantee.pk),
        "mappings": "ours",
        "model_id": str(model.pk), "cluster_id": str(cluster.pk),
        "experiment_id": str(experiment.pk),
        "question_id": str(question.pk),
        "revision_id": str(revision.pk), "suggestion_id": str(draft.pk),
        "notification_id": str(told.pk),
        "reign_id": str(reign.pk), "round_id": str(rounds.pk),
        "invitation_id": str(invited.pk), "deletion_id": str(deletion.pk), "call_id": str(asked.pk),
        "sha256": "0" * 64, "rule": "email", "value_sha256": "0" * 64,
        "slug": project.slug, "username": owner.username, "run_id": str(run.pk), "prompt_id": str(duel.prompt_id),
        "duel_id": str(duel.pk), "sample_id": str(duel.sample_id), "lease_id": str(lease.pk),
        "export_id": str(export.pk), "before": str(export.pk), "after": str(export.pk), "view_id": str(view.pk),
        "webhook_id": str(hook.pk), "scenario_id": str(trajectory.scenario_id), "trajectory_id": str(trajectory.pk),
        "evaluation_id": str(episode.evaluation_id), "split_id": str(split.pk), "episode_id": str(episode.pk),
        "name": "comparison.md", "models": "judge-a", "recipes": "weekly", "files": "manifest.json",
        "instructions": "judge", "token_id": "0",
    }  # fmt: skip
    return Rows(project, ids)


def everything() -> dict[str, list[Any]]:
    """All rows of all our tables but the logs."""
    return {
        model.__name__: list(model._default_manager.order_by("pk").values())
        for model in apps.get_models()
        if model.__module__.startswith("curation.") and model.__name__ not in LOG
    }


def call(client: Client, rows: Rows, method: str, path: str, headers: dict[str, str] | None = None) -> Any:
    return client.generic(method, rows.address(path), json.dumps(rows.body(method, path)), JSON, headers=headers)


def test_a_stranger_finds_nothing_by_id(client: Client, rows: Rows) -> None:
    """Admin of a project of their own, all scopes, and the ids of another's rows."""
    stranger = make_user()
    make_project("elsewhere", user=stranger)
    headers, before, wrong = make_bearer(stranger), everything(), {}

    for method, path in CALLS:
        if "{slug}" in path and "_id}" in path:
            own = rows.address(path).replace("/acme/", "/elsewhere/")
            answer = client.generic(method, own, json.dumps(rows.body(method, path)), JSON, headers=headers)
            if answer.status_code != 404:
                wrong[method, own] = answer.content
        answer = call(client, rows, method, path, headers)
        if path == "/api/v1/samples/bulk":  # names no project; the answer is about the caller's own
            assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "ids")
        elif answer.status_code != 404:
            wrong[method, path] = answer.content

    assert wrong == {}
    assert everything() == before


@pytest.mark.parametrize("scopes", [(), ("read",)])
def test_a_viewer_and_a_token_to_read_write_nothing(
    client: Client, rows: Rows, owner: User, scopes: tuple[str, ...]
) -> None:
    user = owner if scopes else make_member(rows.project, role=Role.VIEWER)
    headers, before, wrong = make_bearer(user, *scopes), everything(), {}

    for method, path in WRITING:
        answer = call(client, rows, method, path, headers)
        if answer.status_code != 403 or not answer.json()["detail"]:
            wrong[method, path] = answer.content

    assert wrong == {}
    assert everything() == before


def test_without_a_credential_nothing_is_shown(client: Client, rows: Rows) -> None:
    answers = {(method, path): call(client, rows, method, path).status_code for method, path in CALLS}

    assert {asked: status for asked, status in answers.items() if status != 401} == {}


TURN = [{"role": "user", "content": "Fix totals."}, {"role": "assistant", "content": "THOUGHT: I look around."}]
GOOD = json.dumps({"instance_id": "acme__billing-1", "messages": TURN})
BAD_LINES = {
    "truncated JSON": GOOD[:-20],
    "wrong columns": '{"question": "?", "answer": "!"}',
    "a line of 50 MB": '{"messages": "' + "x" * 50_000_000 + '"}',
    "no text": b"\xff\xfe\x00\x01".decode("latin-1"),
    "a NUL byte": GOOD.replace("look", "lo\0ok"),
    "a role that nobody knows": GOOD.replace('"user"', '"wizard"'),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_named_and_the_good_ones_go_in(client: Client, owner: User, name: str) -> None:
    make_project("acme", user=owner)
    headers = make_bearer(owner)
    content = f"{GOOD}\n{BAD_LINES[name]}\n{GOOD.replace('billing-1', 'billing-2')}\n".encode("latin-1")
    file = SimpleUploadedFile("turns.jsonl", content)

    started = client.post("/api/v1/projects/acme/imports", {"kind": "turns", "file": file}, headers=headers)
    end(Run.objects.get())

    run = client.get(started.headers["Location"], headers=headers).json()
    items = client.get(f"{started.headers['Location']}/items?stage=bad_row", headers=headers).json()["data"]
    assert run["state"] == "succeeded"
    assert [(item["key"], bool(item["reason"])) for item in items] == [("row 2", True)]
    assert set(Prompt.objects.values_list("instance_id", flat=True)) == {"acme__billing-1", "acme__billing-2"}


@pytest.mark.django_db(transaction=True)
def test_a_model_that_is_not_there_fails_its_items_in_words_and_can_be_retried(
    client: Client, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("curation.runs.calls.ask._pause", lambda tried, retry_after: 0.0)
    project = make_project("acme", user=owner, settings_json={"runs": {"wait_minutes": 0}})
    make_duel(project)
    make_endpoint(project, "gone", model="openai/gone", api_base="http://127.0.0.1:9/v1")
    headers = make_bearer(owner)

    body = {"kind": "king", "params": {"model": "gone", "attempts": 1}}
    started = client.post("/api/v1/projects/acme/runs", body, JSON, headers=headers)
    assert started.status_code == 202, started.content
    end(Run.objects.get(kind="king"))

    run = client.get(started.headers["Location"], headers=headers).json()
    items = client.get(f"{started.headers['Location']}/items", headers=headers).json()["data"]
    assert (run["state"], run["items"]["failed"], run["items"]["done"]) == ("failed", 1, 0)
    assert "127.0.0.1:9" in items[0]["reason"] or "connect" in items[0]["reason"].lower()
    assert Call.objects.filter(run_id=run["id"]).exists()
    assert Duel.objects.count() == Sample.objects.count() == 1
    retried = client.post(f"{started.headers['Location']}/retry-failed", headers=headers)
    assert retried.status_code in (200, 202)
    assert Endpoint.objects.get(name="gone")
