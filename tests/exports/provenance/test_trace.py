"""Provenance: from an exported row to every call that made it, with its price, and from a call to the exports."""

import hashlib
import re
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from curation.duels.models import Answer, Duel, Verdict
from curation.exports.models import Export
from curation.projects.models import Project
from curation.runs.models import Call, CallStatus, Item, Run
from curation.samples.models import Sample
from tests.exports.exporting import content, make_approved, run_export
from tests.factories import make_member, make_project

pytestmark = pytest.mark.django_db(transaction=True)


def make_call(item: Item, *, cost: str | None, attempt: int = 1, status: str = CallStatus.OK) -> Call:
    return Call.objects.create(
        project=item.run.project,
        run=item.run,
        item=item,
        endpoint_name="model-a",
        content_hash="0" * 64,
        attempt=attempt,
        status=status,
        cost=None if cost is None else Decimal(cost),
    )


def make_item(project: Project, key: str, stage: str = "challenger") -> Item:
    run = Run.objects.create(project=project, kind="duel", state="succeeded")
    return Item.objects.create(run=run, stage=stage, key=key, state="done")


def traced_sample(project: Project) -> tuple[Sample, list[Call]]:
    """An approved duel: the challenger's answer took two attempts, the king's was imported, one verdict is cheap and
    one of unknown cost."""
    sample = make_approved(project)
    duel = sample.duel
    item = make_item(project, "1:0")
    calls = [make_call(item, cost="0.25", status=CallStatus.ERROR), make_call(item, cost="0.5", attempt=2)]
    Answer.objects.filter(pk=duel.challenger_id).update(call=calls[1])
    for verdict, cost in zip(duel.verdicts.order_by("judge", "order"), ("0.01", None), strict=False):
        call = make_call(make_item(project, f"1:{verdict.judge}:{verdict.order}", "judge"), cost=cost)
        Verdict.objects.filter(pk=verdict.pk).update(call=call)
        calls.append(call)
    return sample, calls


def lines_of(export: Export) -> list[bytes]:
    return content(export, "sft-messages.train.jsonl").splitlines(keepends=True)


def test_a_row_names_every_call_behind_it_and_what_they_cost() -> None:
    project = make_project()
    sample, calls = traced_sample(project)
    make_approved(project)
    export = run_export(project, {"formats": ["sft-messages"]})
    assert len(lines_of(export)) == 2
    client = signed_in(project)

    found = [
        client.get(f"/api/v1/exports/{export.pk}/rows/{hashlib.sha256(line).hexdigest()}").json()
        for line in lines_of(export)
    ]

    traced, other = sorted(found, key=lambda row: row["sample"] != str(sample.pk))
    assert (traced["sample"], traced["export"], traced["format"]) == (str(sample.pk), str(export.pk), "sft-messages")
    assert {call["id"] for step in traced["steps"] for call in step["calls"]} == {str(call.pk) for call in calls}
    assert [step["kind"] for step in traced["steps"]][:3] == ["answer", "answer", "verdict"]
    assert (Decimal(traced["cost"]), traced["cost_unknown_calls"]) == (Decimal("0.76"), 1)
    assert [decision["action"] for decision in traced["decisions"]] == ["approve"]
    assert other["sample"] != str(sample.pk) and not any(step["calls"] for step in other["steps"])


def test_a_call_leads_to_the_exports_that_it_reached() -> None:
    project = make_project()
    sample, calls = traced_sample(project)
    first, second = (
        run_export(project, {"formats": formats}) for formats in (["sft-messages"], ["sft-messages", "dpo"])
    )
    client = signed_in(project)

    for call in calls:
        found = client.get(f"/api/v1/calls/{call.pk}/exports").json()["data"]
        assert [entry["export"] for entry in found] == [str(second.pk), str(first.pk)]
        assert [[row["format"] for row in entry["rows"]] for entry in found] == [
            ["sft-messages", "dpo"],
            ["sft-messages"],
        ]
        assert {row["sample"] for entry in found for row in entry["rows"]} == {str(sample.pk)}


def test_a_row_keeps_the_verdicts_of_its_export_when_its_duel_is_scored_again() -> None:
    project = make_project()
    sample, calls = traced_sample(project)
    before = run_export(project, {"formats": ["sft-messages"]})
    Duel.objects.filter(sample=sample).update(counting=None)
    after = run_export(project, {"formats": ["sft-messages"]})
    client = signed_in(project)

    kinds = [
        [step["kind"] for step in client.get(f"/api/v1/exports/{export.pk}/rows/{sha}").json()["steps"]]
        for export in (before, after)
        for sha in [hashlib.sha256(lines_of(export)[0]).hexdigest()]
    ]
    assert kinds[0].count("verdict") >= 2 and kinds[1] == ["answer", "answer"]
    for call, exports in zip(calls, ([after, before], [after, before], [before], [before]), strict=True):
        found = client.get(f"/api/v1/calls/{call.pk}/exports").json()["data"]
        assert [entry["export"] for entry in found] == [str(export.pk) for export in exports]


def test_a_hash_that_is_not_in_the_export_is_404() -> None:
    project = make_project()
    traced_sample(project)
    export = run_export(project, {"formats": ["sft-messages"]})
    client = signed_in(project)

    for wrong in ("0" * 64, "é" * 64, "x", '"sample":'):
        assert client.get(f"/api/v1/exports/{export.pk}/rows/{wrong}").status_code == 404


def test_the_pages_lead_from_a_row_to_its_calls_in_two_clicks_and_back() -> None:
    project = make_project()
    _, calls = traced_sample(project)
    export = run_export(project, {"formats": ["sft-messages"]})
    client = signed_in(project)
    sha = hashlib.sha256(lines_of(export)[0]).hexdigest()
    rows_url = f"/p/{project.slug}/exports/{export.pk}/rows/"

    assert f'href="{rows_url}"' in client.get(f"/p/{project.slug}/exports/{export.pk}/").content.decode()
    assert f'href="{rows_url}{sha}/"' in client.get(rows_url).content.decode()
    page = client.get(f"{rows_url}{sha}/").content.decode()
    assert "$0.76" in page and "1 call of unknown cost" in page
    for call in calls:
        back = f"/p/{project.slug}/calls/{call.pk}/exports/"
        assert f'href="{back}"' in page
        assert f'href="{rows_url}{sha}/"' in client.get(back).content.decode()


def test_a_row_is_found_by_its_sample_and_by_its_hash() -> None:
    project = make_project()
    samples = [make_approved(project) for _ in range(2)]
    export = run_export(project, {"formats": ["sft-messages", "dpo"]})
    client = signed_in(project)
    rows_url = f"/p/{project.slug}/exports/{export.pk}/rows/"
    wanted = {row["sha256"] for row in api_rows(client, export) if row["sample"] == str(samples[1].pk)}

    page = client.get(rows_url, {"q": samples[1].pk}).content.decode()
    assert len(wanted) == 2 and set(re.findall(r"/rows/(\w{64})/", page)) == wanted
    assert {row["sha256"] for row in api_rows(client, export, sample=samples[1].pk)} == wanted
    assert api_rows(client, export, sample=999_999) == []
    sha = wanted.pop()
    assert client.get(rows_url, {"q": f" {sha.upper()} "}).headers["Location"] == f"{rows_url}{sha}/"
    for nothing in ("999999", "zzz"):
        assert "No such row" in client.get(rows_url, {"q": nothing}).content.decode()


def api_rows(client: Client, export: Export, **params: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/v1/exports/{export.pk}/rows", params).json()["data"]
    return found


def signed_in(project: Project) -> Client:
    client = Client()
    client.force_login(make_member(project, role="viewer"))
    return client
