"""Push an export to a hub: a real HTTP server, driven by the hub's own client."""

import hashlib
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.test import Client
from pytest_django import Settings

from curation.exports.models import Export
from curation.llm.endpoints.keys import read_rules
from curation.projects.models import AuditEntry, Project, Role
from curation.runs.control import retry_failed
from curation.runs.engine.worker import drive
from curation.runs.kinds import kind_of
from curation.runs.launch import launch
from curation.runs.models import Run
from curation.web.problems import Invalid
from tests.exports.exporting import make_approved, run_export
from tests.exports.hub.stub_hub import TOKEN, Hub
from tests.factories import make_bearer, make_member, make_project, make_scenario, make_user, ticket
from tests.world import world

pytestmark = pytest.mark.django_db(transaction=True)
REPOSITORY = "acme/shell-agents"
RECIPE = {"formats": ["sft-messages", "dpo"], "splits": {"train": 0.5, "val": 0.5}}


def connect(project: Project, hub: Hub) -> None:
    project.settings_json["hub"] = {"endpoint": hub.address, "token": "ACME_HUB_TOKEN", "namespaces": ["acme"]}
    project.save()


def make_export(**recipe: Any) -> Export:
    project = make_project()
    for number in range(12):
        answer = f"THOUGHT: {ticket(number)}\n\n```bash\nls {number}\n```"
        make_approved(project, challenger=answer, instance_id=f"acme-{number}")
    return run_export(project, {**RECIPE, **recipe})


@world
def plain(patched: pytest.MonkeyPatch) -> Export:
    return make_export()


@world
def in_parquet(patched: pytest.MonkeyPatch) -> Export:
    return make_export(parquet=True)


@pytest.fixture
def export(plain: Export, hub: Hub) -> Export:
    """Twelve rows of a project that may push to the hub."""
    connect(plain.project, hub)
    return plain


def push(export: Export, repository: str = REPOSITORY, *, private: bool = True, user: Any = None) -> Run:
    params = {"export": str(export.pk), "repository": repository, "private": private}
    run = launch(project=export.project, kind="push", params=params, user=user)
    drive(run.pk)
    run.refresh_from_db()
    return run


def reason_of(run: Run) -> str:
    assert run.state == "failed"
    return str(run.items.values_list("reason", flat=True)[0])


def digests(export: Export) -> dict[str, str]:
    return dict(export.files.values_list("name", "sha256"))


def pushed(hub: Hub) -> dict[str, str]:
    tree = hub.repositories[REPOSITORY].tree
    return {name: hashlib.sha256(data).hexdigest() for name, data in tree.items() if name != ".gitattributes"}


@pytest.mark.parametrize("stored", ["plain", "in_parquet"])
def test_all_files_arrive_in_one_commit_byte_for_byte(hub: Hub, request: pytest.FixtureRequest, stored: str) -> None:
    user, export = make_user(), request.getfixturevalue(stored)
    connect(export.project, hub)

    run = push(export, user=user)

    repository = hub.repositories[REPOSITORY]
    assert run.state == "succeeded"
    assert pushed(hub) == digests(export)
    assert len(repository.commits) == 2  # the one that made the repository, and ours
    assert repository.private
    assert run.result["commit"] == repository.head
    assert run.result["url"] == f"{hub.address}/datasets/{REPOSITORY}/commit/{repository.head}"
    assert repository.lfs or stored == "plain"
    entry = AuditEntry.objects.get(action="export.push")
    assert (entry.actor, entry.subject) == (user, f"export {export.pk}")
    assert entry.data["commit"] == repository.head
    assert entry.data["manifest_sha256"] == export.manifest_sha256


def test_the_repository_loads_with_load_dataset(hub: Hub, export: Export, tmp_path: Path) -> None:
    push(export)
    script = (
        "import sys, datasets\n"
        f"found = datasets.load_dataset({REPOSITORY!r}, token={TOKEN!r})\n"
        "print({name: split.num_rows for name, split in found.items()})\n"
    )
    env = {"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "HF_HUB_DISABLE_XET": "1"}
    ran = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr[-3000:]
    assert json.loads(ran.stdout.replace("'", '"')) == export.counts["rows"]["sft-messages"]


def test_the_token_is_in_no_row_log_or_answer_and_goes_to_no_other_host(
    hub: Hub, in_parquet: Export, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    export = in_parquet
    connect(export.project, hub)
    user = make_member(export.project, role=Role.ADMIN)
    client = Client()
    client.force_login(user)
    hub.fail_next.append(("/commit/", 400, f"the token {TOKEN} may not write"))

    failed, succeeded = push(export, user=user), push(export, user=user)

    assert "may not write" in reason_of(failed)
    assert succeeded.state == "succeeded"
    sent_to_storage = {token for _, path, token in hub.requests if path.startswith("/storage/")}
    assert sent_to_storage == {None}
    assert f"Bearer {TOKEN}" in {token for _, _, token in hub.requests}
    tables = [AuditEntry.objects.values(), Run.objects.values(), failed.items.values(), succeeded.items.values()]
    shown = [client.get(f"/api/v1/exports/{export.pk}/pushes"), client.get(f"/api/v1/runs/{failed.pk}/items")]
    assert [answer.status_code for answer in shown] == [200, 200]
    everything = repr([list(table) for table in tables]) + caplog.text + repr([answer.content for answer in shown])
    assert TOKEN not in everything


def test_a_push_that_is_repeated_makes_no_second_commit(hub: Hub, export: Export) -> None:
    """As a worker does whose predecessor died between the commit and its own record of it."""
    first, second = push(export), push(export)

    assert second.state == "succeeded"
    assert second.result["commit"] == first.result["commit"]
    assert len(hub.repositories[REPOSITORY].commits) == 2


def test_a_push_that_failed_is_retried_and_finishes(hub: Hub, export: Export) -> None:
    user = make_member(export.project, role=Role.ADMIN)
    hub.fail_next.append(("/preupload/", 403, "no write permission"))
    run = push(export, user=user)
    assert "no write permission" in reason_of(run)

    retry_failed(run=run, user=user)
    drive(run.pk)
    run.refresh_from_db()

    assert run.state == "succeeded"
    assert pushed(hub) == digests(export)


def test_files_of_an_earlier_push_go_and_those_of_others_stay(hub: Hub, export: Export) -> None:
    hub.add(REPOSITORY, tree={"NOTES.md": b"ours, by hand"})
    push(export)
    later = run_export(export.project, {"formats": ["kto"]})

    push(later)

    assert pushed(hub) == {**digests(later), "NOTES.md": hashlib.sha256(b"ours, by hand").hexdigest()}


def test_files_of_a_commit_whose_answer_was_lost_are_no_part_of_the_next_push(hub: Hub, export: Export) -> None:
    hub.add(REPOSITORY)
    hub.lose_next = True
    assert "The hub may have made the commit" in reason_of(push(export))
    assert pushed(hub) == digests(export)
    later = run_export(export.project, {"formats": ["kto"]})

    push(later)

    assert pushed(hub) == digests(later)


def test_an_answer_that_the_client_cannot_read_is_said(hub: Hub, export: Export) -> None:
    hub.add(REPOSITORY)
    hub.fail_next.append(("/commit/", 200, "hook refused"))
    assert reason_of(push(export)) == f"{REPOSITORY}: the hub's answer has no 'commitUrl'"


def test_a_private_push_to_a_public_repository_writes_nothing(hub: Hub, export: Export) -> None:
    hub.add(REPOSITORY, private=False)

    assert "is public" in reason_of(push(export))
    assert pushed(hub) == {}
    assert push(export, private=False).state == "succeeded"


def test_a_commit_of_somebody_else_in_between_is_not_overwritten(hub: Hub, export: Export) -> None:
    hub.add(REPOSITORY)
    hub.fail_next.append(("/commit/", 412, "A commit has happened since. Please refresh and try again."))

    assert "A commit has happened since" in reason_of(push(export))


def test_a_file_that_changed_in_storage_is_not_pushed(hub: Hub, export: Export) -> None:
    file = export.files.get(name="sft-messages.train.jsonl")
    Path(default_storage.path(file.stored_as)).write_bytes(b"{}\n")

    assert "its sha256 differs" in reason_of(push(export))
    assert not hub.requests


@pytest.mark.parametrize(
    ("change", "repository", "word"),
    [
        ({"token": ""}, REPOSITORY, "hub.token"),
        ({}, "other/data", "hub.namespaces"),
        ({}, "acme", "namespace/name"),
        ({}, "acme/../other", "namespace/name"),
        ({"token": "DATABASE_URL"}, REPOSITORY, "HUB_TOKENS"),
        ({"endpoint": "http://localhost:1"}, REPOSITORY, "HUB_TOKENS"),
    ],
)
def test_what_is_not_allowed_is_refused_at_launch(
    hub: Hub, export: Export, change: dict[str, str], repository: str, word: str
) -> None:
    project = export.project
    project.settings_json["hub"] |= change
    project.save()

    with pytest.raises(Invalid, match=word):
        push(export, repository)
    assert not hub.requests


def test_a_project_that_the_operator_did_not_name_has_no_token(export: Export, settings: Settings) -> None:
    settings.HUB_TOKENS = read_rules("ACME_HUB_TOKEN=127.0.0.1@other")
    with pytest.raises(Invalid, match="HUB_TOKENS"):
        push(export)


def test_a_prefix_names_no_variable_of_the_server(export: Export, settings: Settings) -> None:
    project = export.project
    settings.HUB_TOKENS = read_rules("DATABASE_*")
    project.settings_json["hub"]["token"] = "DATABASE_URL"
    project.save()
    with pytest.raises(Invalid, match="HUB_TOKENS"):
        push(export)


def test_private_addresses_and_plain_http_need_the_operators_leave(export: Export, settings: Settings) -> None:
    settings.ALLOW_PRIVATE_HUB_HOSTS = False
    with pytest.raises(Invalid, match="https"):
        push(export)


def test_what_an_admin_forbids_after_the_launch_is_not_done(hub: Hub, export: Export) -> None:
    project = export.project
    run = launch(project=project, kind="push", params={"export": str(export.pk), "repository": REPOSITORY}, user=None)
    project.settings_json["hub"]["namespaces"] = ["elsewhere"]
    project.save()
    drive(run.pk)
    run.refresh_from_db()

    assert "elsewhere" in reason_of(run)
    assert not hub.requests


def test_a_worker_without_the_token_says_so(export: Export, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACME_HUB_TOKEN")
    assert "ACME_HUB_TOKEN is not set" in reason_of(push(export))


def test_the_page_and_the_api_launch_a_push_and_list_it(hub: Hub, export: Export) -> None:
    project = export.project
    user = make_member(project, role=Role.ADMIN)
    client = Client()
    client.force_login(user)
    page = f"/p/{project.slug}/exports/{export.pk}/"

    assert f"Push to {hub.address}" in client.get(page).content.decode()
    refused = client.post(f"{page}push/", {"repository": "other/x", "public": "on"})
    shown = refused.content.decode()
    assert refused.status_code == 422 and 'id="push-refused" role="alert"' in shown and "acme" in shown
    assert 'value="other/x"' in shown and 'name="public" checked' in shown and not Run.objects.filter(kind="push")
    client.post(f"{page}push/", {"repository": REPOSITORY})
    drive(Run.objects.get(kind="push").pk)
    answered = client.post(f"/api/v1/exports/{export.pk}/pushes", {"repository": "other/x"}, "application/json")
    assert (answered.status_code, answered.json()["errors"][0]["path"]) == (422, "params.repository")
    listed = client.get(f"/api/v1/exports/{export.pk}/pushes").json()["data"]
    assert [(one["repository"], one["commit"]) for one in listed] == [(REPOSITORY, hub.repositories[REPOSITORY].head)]
    assert listed[0]["url"] in client.get(page).content.decode()
    viewer = make_member(project, role=Role.VIEWER)
    client.force_login(viewer)
    assert client.post(f"{page}push/", {"repository": REPOSITORY}).status_code == 403
    assert "Push to" not in client.get(page).content.decode()


def test_retrying_and_resuming_a_push_need_what_the_push_needs(hub: Hub, export: Export) -> None:
    user = make_member(export.project, role=Role.ADMIN)
    run = push(export, user=user)
    Run.objects.filter(pk=run.pk).update(state="failed", items_failed=1)
    run.items.update(state="failed")
    client = Client()
    token = make_bearer(user, "read", "run")
    for verb in ("retry-failed", "resume"):
        answer = client.post(f"/api/v1/runs/{run.pk}/{verb}", {}, "application/json", headers=token)
        assert (answer.status_code, "export" in answer.content.decode()) == (403, True), verb
    run.refresh_from_db()
    assert run.state == "failed"
    assert (
        client.post(f"/api/v1/runs/{run.pk}/retry-failed", headers=make_bearer(user, "run", "export")).status_code
        == 202
    )


def test_scenarios_arrive_as_a_harbor_data_set(hub: Hub) -> None:
    project = make_project()
    connect(project, hub)
    scenario = make_scenario(project)
    make_scenario(project, "draft", status="draft")
    params = {"repository": REPOSITORY, "filter": {"name": scenario.name}}
    run = launch(project=project, kind="push_tasks", params=params, user=None)
    drive(run.pk)
    run.refresh_from_db()

    assert run.state == "succeeded", reason_of(run)
    tree = hub.repositories[REPOSITORY].tree
    [listed] = json.loads(tree["registry.json"])
    [task] = listed["tasks"]
    assert task["git_url"] == f"{hub.address}/datasets/{REPOSITORY}"
    assert {f"{task['path']}/task.toml", f"{task['path']}/tests/test.sh"} <= set(tree)
    assert kind_of("push_tasks").conclude(run) == f"1 task pushed to {REPOSITORY}."
    assert AuditEntry.objects.get(action="export.push").data["tasks"] == 1


def test_a_push_of_scenarios_says_what_is_wrong(hub: Hub) -> None:
    project = make_project()
    connect(project, hub)
    params = {"repository": "other/tasks", "filter": {"name": "none"}}
    with pytest.raises(Invalid) as refused:
        launch(project=project, kind="push_tasks", params=params, user=None)
    assert {error.path for error in refused.value.errors} == {"params.filter", "params.repository"}
