"""Every REST call that changes data writes to the audit log. The calls come from OpenAPI, so a new one is tested."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from curation.duels.answers.stage import fingerprint
from curation.duels.models import AnswerText, Duel, Reign
from curation.evaluations.models import Evaluation, Split, SplitRow, SplitRowText
from curation.evaluations.screen import add_served_models
from curation.exports.models import ExportFile, Round
from curation.guarantees.models import Draw, Guarantee
from curation.llm.client.gateway import target_of
from curation.llm.endpoints.keys import read_rules
from curation.llm.models import Endpoint
from curation.projects.access import Access
from curation.projects.models import AuditEntry, Invitation, Project, Scope, Token
from curation.projects.service_accounts import ServiceAccountIn, accounts
from curation.projects.sign_in.backend import hash_of
from curation.review.models import Clearance, Decision, Revision
from curation.runs.calls.targets import call_params
from curation.runs.models import Item, Run
from curation.samples.models import Sample
from curation.scenarios.models import GateReport
from tests.factories import (
    make_bearer,
    make_duel,
    make_member,
    make_project,
    make_pull_request,
    make_run,
    make_scenario,
    make_trajectory,
    make_user,
)
from tests.web.http import test_refusals as refusals
from tests.web.http.test_refusals import DOCUMENT, JSON, OPEN, READING, Rows

pytestmark = pytest.mark.django_db
owner, rows = refusals.owner, refusals.rows
V1 = "/api/v1"
SLUG = f"{V1}/projects/{{slug}}"
CALLS = [
    (method.upper(), path)
    for path, methods in DOCUMENT["paths"].items()
    if path not in OPEN
    for method in methods
    if method not in ("get", "head")
]
# Calls that write, but change nothing of the project that lasts.
NOT_IN_THE_LOG = {
    f"POST {SLUG}/queue/next": "a lease is not a decision, and lapses",
    f"POST {V1}/leases/{{lease_id}}/heartbeat": "extends a lease",
    f"DELETE {V1}/leases/{{lease_id}}": "releases a lease",
    f"POST {SLUG}/otlp/v1/traces": "the import that takes the spans is in the log, under the sender's name",
    f"POST {SLUG}/otlp/v1/logs": "the import that takes the records is in the log, under the sender's name",
    f"POST {V1}/notifications/read": "only says what its owner has read",
    f"POST {V1}/notifications/{{notification_id}}/read": "only says what its owner has read",
}
# They read, and must write nothing at all.
READS = READING | {f"{SLUG}/imports/preview", f"{SLUG}/settings/preview", f"{SLUG}/runs/estimate"}
# Written beside every call: when a token was last used.
BESIDE = ('UPDATE "projects_token"', 'INSERT INTO "projects_auditentry"', "SAVEPOINT", "RELEASE")
Prepare = Callable[[Rows, User], Any]


def _bob(rows: Rows, owner: User) -> None:
    rows.ids["username"] = make_member(rows.project).username


def _found_address(rows: Rows, owner: User) -> dict[str, str]:
    """The scan finds an address in the answer of the sample."""
    address = "ann.lee@acme-billing.com"
    duel = Duel.objects.get(sample_id=rows.ids["sample_id"])
    AnswerText.objects.filter(answer=duel.challenger_id).update(text=f"Write to {address}.")
    found = {"rule": "email", "value_sha256": hashlib.sha256(address.encode()).hexdigest()}
    rows.ids |= found
    return {**found, "reason": "a public address"}


def _cleared(rows: Rows, owner: User) -> None:
    found = _found_address(rows, owner)
    Clearance.objects.create(sample_id=rows.ids["sample_id"], cleared_by=owner, **found)


def _token(rows: Rows, owner: User) -> None:
    rows.ids["token_id"] = str(Token.objects.create(user=owner, prefix="wn", digest="d", scopes=["read"]).pk)


def _service_account(rows: Rows, owner: User) -> dict[str, list[str]]:
    access = Access(owner, rows.project, "admin", frozenset(Scope))
    made = accounts.create(access, ServiceAccountIn(name="nightly", role="viewer", note=""))
    rows.ids["username"] = made.user.username
    rows.ids["token_id"] = str(Token.objects.create(user=made.user, prefix="wn", digest="d", scopes=["read"]).pk)
    return {"scopes": ["read"]}


def _invited(rows: Rows, owner: User) -> dict[str, str]:
    project = make_project("elsewhere")
    tomorrow = timezone.now() + timedelta(days=1)
    Invitation.objects.create(
        project=project, role="viewer", invited_by=make_user(), digest=hash_of("s"), expires_at=tomorrow
    )
    return {"secret": "s"}


def _doubtful(rows: Rows, owner: User) -> dict[str, list[str]]:
    make_pull_request(rows.project, "acme__billing-doubtful", doubt="It names another repository.")
    return {"instance_ids": ["acme__billing-doubtful"]}


def _exported(rows: Rows, owner: User) -> None:
    Sample.objects.filter(project=rows.project).update(status="approved")


def _in_state(state: str) -> Prepare:
    def prepare(rows: Rows, owner: User) -> None:
        run = Run.objects.get(pk=rows.ids["run_id"])
        Run.objects.filter(pk=run.pk).update(state=state, items_failed=1)
        Item.objects.create(run=run, stage="freeze", key="freeze", state="failed")

    return prepare


def _scenario(rows: Rows, owner: User) -> None:
    rows.ids["scenario_id"] = str(make_scenario(rows.project).pk)


def _held(rows: Rows, owner: User) -> dict[str, Any]:
    scenario = make_scenario(rows.project, status="held")
    axes = [{"axis": "task", "value": "cleanup", "finding": "mismatch", "reason": "nothing is removed"}]
    GateReport.objects.create(
        scenario=scenario, bundle_sha256=scenario.bundle_sha256, verdict="held", axes=axes, backend="bubblewrap"
    )
    rows.ids["scenario_id"] = str(scenario.pk)
    return {"axes": ["task"], "comment": "the rest is a matter of taste"}


def _reviewed_round(rows: Rows, owner: User) -> None:
    row = Round.objects.get(pk=rows.ids["round_id"])
    make_trajectory(rows.project, run=row.rollout, sample={"status": "approved"})


def _to_audit(rows: Rows, owner: User) -> dict[str, Any]:
    for _ in range(9):
        make_duel(rows.project, score=90.0)
    return {"score": "score", "size": 5, "alpha": 0.5, "delta": 0.5}


def _proven(rows: Rows, owner: User) -> dict[str, Any]:
    ask = partial(Client().post, content_type=JSON, headers=make_bearer(owner))
    audit = ask(f"{V1}/projects/{rows.project.slug}/audits", _to_audit(rows, owner)).json()
    for pk in Draw.objects.filter(audit=audit["id"]).values_list("sample_id", flat=True):
        assert ask(f"{V1}/samples/{pk}/decisions", {"action": "approve"}).status_code == 201
    rows.ids["audit_id"] = audit["id"]
    return {"keep_alive": 0.0}


def _without_guarantee(rows: Rows, owner: User) -> None:
    Guarantee.objects.all().delete()


def _operator(rows: Rows, owner: User) -> dict[str, Any]:
    make_scenario(rows.project)
    return {"operator": "judge-a"}


def _decided(rows: Rows, owner: User) -> dict[str, Any]:
    body = {"ids": [rows.ids["sample_id"]], "action": "approve"}
    done = Client().post(f"{V1}/samples/bulk", body, JSON, headers=make_bearer(owner))
    return {"project": rows.project.slug, "batch": done.json()["batch"]}


def _flagged(rows: Rows, owner: User) -> None:
    sample = rows.ids["sample_id"]
    Decision.objects.create(sample_id=sample, reviewer=owner, action="flag", version=1)


def _with_server(rows: Rows, owner: User) -> None:
    Endpoint.objects.update(api_base="https://models.example/v1", model="openai/a")


def _tested(rows: Rows, owner: User) -> None:
    endpoint = Endpoint.objects.get(name="judge-a")
    result = {"version": endpoint.version, "params": {"takes_tools": True}}
    values = {"params": {"model": "judge-a"}, "state": "succeeded", "result": result}
    Run.objects.create(project=endpoint.project, kind="test", **values)


def _static(rows: Rows, owner: User) -> dict[str, str]:
    Evaluation.objects.update(kind="static")
    return {"model": "judge-a"}


def _unrevised(rows: Rows, owner: User) -> None:
    """A run whose samples somebody revised is kept."""
    Revision.objects.all().delete()


def _unused_split(rows: Rows, owner: User) -> None:
    rows.ids["split_id"] = str(Split.objects.create(project=rows.project, name="unused").pk)


def _rows_of_split(rows: Rows, owner: User) -> dict[str, Any]:
    row = SplitRow.objects.create(split_id=int(rows.ids["split_id"]), number=0)
    SplitRowText.objects.create(row=row, messages=[{"role": "user", "content": "x"}], expected="ls")
    return {"kind": "static", "models": ["judge-a"], "split": rows.ids["split_id"]}


def _file_of_export(rows: Rows, owner: User) -> dict[str, Any]:
    key = default_storage.save("exports/1/x/val.jsonl", ContentFile(b"{}"))
    for split in ("val", "train"):
        ExportFile.objects.create(
            export_id=int(rows.ids["export_id"]), name=f"{split}.jsonl", stored_as=key, format="sft-messages",
            split=split, sha256="0" * 64,
        )  # fmt: skip
    return {"export": rows.ids["export_id"]}


def _with_hub(rows: Rows, owner: User) -> None:
    # An address without a name: nothing is resolved.
    hub = {"endpoint": "https://8.8.8.8", "token": "HUB_TOKEN", "namespaces": ["acme"]}
    Project.objects.filter(pk=rows.project.pk).update(settings_json={"hub": hub})


def _accepted(rows: Rows, owner: User) -> dict[str, str]:
    """A run whose verdict accepted judge-a against another king, and no king."""
    Reign.objects.all().delete()
    run = make_run(rows.project, state="succeeded")
    target = target_of(Endpoint.objects.get(name="judge-a"))
    given = run.settings.generation
    params = call_params(target, {"temperature": given.temperature, "max_tokens": given.max_tokens})
    mark = fingerprint("challenger", target, "0" * 64, params)
    sides = {
        "challenger": {"side": "challenger", "model": "judge-a", "instructions": "0" * 64, "fingerprint": mark},
        "opponent": {"side": "king", "model": "king", "instructions": "0" * 64, "fingerprint": "1" * 64},
    }
    figures = {
        "accepted": True,
        "decision": "accepted",
        "reasons": [],
        "margin": 5.0,
        "lcb": 1.0,
        "undecided_without": [],
    }
    Run.objects.filter(pk=run.pk).update(result={"verdicts": [{**sides, **figures}]})
    return {"run": str(run.pk)}


# Preparations of a call beside the rows of `rows`; a returned body replaces the example.
PREPARE: dict[str, Prepare] = {
    f"PATCH {SLUG}/members/{{username}}": _bob,
    f"DELETE {SLUG}/members/{{username}}": _bob,
    f"DELETE {V1}/tokens/{{token_id}}": _token,
    f"DELETE {SLUG}/service-accounts/{{username}}": _service_account,
    f"POST {SLUG}/service-accounts/{{username}}/tokens": _service_account,
    f"DELETE {SLUG}/service-accounts/{{username}}/tokens/{{token_id}}": _service_account,
    f"POST {V1}/invitations/accept": _invited,
    f"POST {V1}/samples/{{sample_id}}/clearances": _found_address,
    f"DELETE {V1}/samples/{{sample_id}}/clearances/{{rule}}/{{value_sha256}}": _cleared,
    f"POST {SLUG}/pull-requests/clear": _doubtful,
    f"POST {SLUG}/reigns": _accepted,
    f"POST {V1}/revisions/{{revision_id}}/rejudge": lambda rows, owner: {"judges": ["judge-a"]},
    f"POST {V1}/samples/{{sample_id}}/suggestions": lambda rows, owner: {"model": "judge-a"},
    f"POST {SLUG}/models": lambda rows, owner: {"name": "new", "model": "scripted/king"},
    f"POST {SLUG}/runs": lambda rows, owner: {"kind": "king", "params": {"model": "judge-a"}},
    f"POST {V1}/runs/{{run_id}}/cancel": _in_state("running"),
    f"POST {V1}/runs/{{run_id}}/resume": _in_state("failed"),
    f"POST {V1}/runs/{{run_id}}/retry-failed": _in_state("failed"),
    f"DELETE {V1}/scenarios/{{scenario_id}}": _scenario,
    f"POST {V1}/scenarios/{{scenario_id}}/clear-axes": _held,
    f"POST {SLUG}/rounds": _operator,
    f"POST {SLUG}/audits": _to_audit,
    f"POST {V1}/audits/{{audit_id}}/guarantees": _proven,
    f"POST {V1}/audits/{{audit_id}}/extensions": _without_guarantee,
    f"DELETE {V1}/audits/{{audit_id}}": _without_guarantee,
    f"POST {V1}/rounds/{{round_id}}/export": _reviewed_round,
    f"POST {V1}/samples/bulk/undo": _decided,
    f"POST {V1}/samples/{{sample_id}}/undo": _decided,
    f"POST {SLUG}/models/{{name}}/line-up": _with_server,
    f"POST {SLUG}/models/{{name}}/apply-test": _tested,
    f"DELETE {V1}/runs/{{run_id}}": _unrevised,
    f"DELETE {V1}/exports/{{export_id}}": _unrevised,
    f"DELETE {V1}/splits/{{split_id}}": _unused_split,
    f"POST {SLUG}/assignments": lambda rows, owner: {"people": [{"username": owner.username}], "filter": {}},
    f"PUT {SLUG}/targets/{{username}}": lambda rows, owner: {"per_day": 20},
    f"POST {V1}/samples/{{sample_id}}/second-opinion": lambda rows, owner: {"username": None},
    f"POST {SLUG}/questions": lambda rows, owner: {"name": "why", "title": "Why?", "kind": "text"},
    f"POST {V1}/samples/{{sample_id}}/flags/resolve": _flagged,
    f"POST {V1}/samples/{{sample_id}}/labels": lambda rows, owner: {"labels": {"error_type": "It guesses."}},
    f"POST {SLUG}/evaluations": _rows_of_split,
    f"POST {SLUG}/splits": _file_of_export,
    f"POST {SLUG}/exports": _exported,
    f"POST {V1}/exports/{{export_id}}/pushes": _with_hub,
    f"POST {V1}/splits/{{split_id}}/contamination": _file_of_export,
    f"POST {V1}/evaluations/{{evaluation_id}}/baseline": _static,
}


def test_every_change_is_in_the_audit_log(
    rows: Rows, owner: User, settings: Settings, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PROJECT_CREATORS, settings.MEDIA_ROOT = ["everyone"], str(tmp_path)
    settings.HUB_TOKENS = read_rules("HUB_TOKEN")
    monkeypatch.setattr(add_served_models, "list_served", lambda **_: ["other"])
    wrong = {}
    for method, path in CALLS:
        with transaction.atomic():
            if reason := _why_wrong(replace(rows, ids=dict(rows.ids)), owner, method, path):
                wrong[f"{method} {path}"] = reason
            transaction.set_rollback(True)
    assert wrong == {}


def _why_wrong(rows: Rows, owner: User, method: str, path: str) -> str:
    name = f"{method} {path}"
    headers = make_bearer(owner)
    prepare = PREPARE.get(name)
    body = (prepare(rows, owner) if prepare else None) or rows.body(method, path)
    address = rows.address(path) + ("?name=acme" if name == f"DELETE {SLUG}" else "")
    entries = AuditEntry.objects.count()
    written: list[str] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not sql.startswith(("SELECT", *BESIDE)):
            written.append(sql)
        return execute(sql, params, many, context)

    with transaction.atomic(), connection.execute_wrapper(watch):
        answer = Client().generic(method, address, json.dumps(body), JSON, headers=headers)

    if path in READS:
        return f"it writes {written}" if written else ""
    if name in NOT_IN_THE_LOG or (answer.status_code < 300 and AuditEntry.objects.count() > entries):
        return ""
    return f"give the call what it needs in PREPARE, or log {written}: {answer.content!r}"
