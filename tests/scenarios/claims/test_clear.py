"""A mismatch holds a scenario back until a person mends or clears it."""

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse

from curation.projects.models import AuditEntry, Project
from curation.runs.engine import dispatch
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.workers import sandbox
from curation.scenarios.models import AxisClearance, GateReport, Scenario
from tests.factories import AXES, BUNDLE, make_scenario
from tests.sandbox.fake import FakeBackend, FakeSession

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def rooms(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBackend]:
    def answers(session: FakeSession, command: str) -> str:
        return "usage: todo\n" if command.endswith(" --help") else ""

    found = FakeBackend(answers, passes=lambda session: any("hello world" in line for line in session.commands))
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)
    monkeypatch.setattr(sandbox, "choose_backend", lambda *_, **__: found)
    yield found


def gate(scenario: Scenario) -> Scenario:
    run = launch(project=scenario.project, kind="gate", params={"filter": {"id": str(scenario.pk)}}, user=None)
    drive(run.pk)
    scenario.refresh_from_db()
    return scenario


def held(project: Project, **axes: str) -> Scenario:
    row = make_scenario(project, status="draft", bundle={"axes": {**AXES, **(axes or {"announcement": "banner"})}})
    assert gate(row).status == "held"
    return row


def test_one_bundle_under_six_combinations_is_admitted_once(project: Project) -> None:
    combinations: list[dict[str, str]] = [
        {},
        {"announcement": "banner"},
        {"provider": "mailbox"},
        {"provider": "fifo", "announcement": "file"},
        {"doc_depth": "layered"},
        {"task": "blocked", "doc_depth": "man-page"},
    ]
    rows = [make_scenario(project, status="draft", bundle={"axes": {**AXES, **axes}}) for axes in combinations]
    run = launch(project=project, kind="gate", params={}, user=None)
    drive(run.pk)
    run.refresh_from_db()
    statuses = [Scenario.objects.get(pk=row.pk).status for row in rows]
    assert statuses == ["admitted", *["held"] * 5]
    assert (run.result["admitted"], run.result["held"]) == (1, 5)
    assert Scenario.objects.get(pk=rows[2].pk).reason == (
        "provider is claimed as mailbox, but nothing shows that the provider reads a mailbox."
    )


def test_a_held_scenario_is_not_rolled_out(project: Project) -> None:
    held(project)
    assert not Scenario.objects.admitted().exists()


def test_clearing_by_rest_admits_it_and_is_in_the_audit_log(client: Client, project: Project) -> None:
    row = held(project, announcement="banner", doc_depth="layered")
    url = f"/api/v1/scenarios/{row.pk}/clear-axes"
    first = client.post(url, {"axes": ["announcement"], "comment": "as good as one"}, "application/json")
    assert first.status_code == 200, first.content
    assert (first.json()["status"], "doc_depth" in first.json()["reason"]) == ("held", True)
    second = client.post(url, {"axes": ["doc_depth"], "comment": "it has topics"}, "application/json")
    assert (second.json()["status"], second.json()["reason"]) == ("admitted", "")
    axes = {axis["axis"]: axis for axis in second.json()["gate"]["axes"]}
    assert (axes["doc_depth"]["finding"], axes["doc_depth"]["cleared"]["comment"]) == ("mismatch", "it has topics")
    assert axes["difficulty"]["finding"] == "unchecked" and axes["difficulty"]["cleared"] is None
    entries = AuditEntry.objects.filter(action="scenario.clear_axes").order_by("id")
    assert [list(entry.data["axes"]) for entry in entries] == [["announcement"], ["doc_depth"]]

    assert gate(row).status == "admitted"
    row.bundle_sha256 = "f" * 64
    row.save()
    assert gate(row).status == "held"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"axes": ["task"], "comment": "x"}, 422),
        ({"axes": [], "comment": "x"}, 422),
        ({"axes": ["announcement"], "comment": " "}, 422),
    ],
)
def test_what_is_no_mismatch_cannot_be_cleared(
    client: Client, project: Project, body: dict[str, object], status: int
) -> None:
    row = held(project)
    answer = client.post(f"/api/v1/scenarios/{row.pk}/clear-axes", body, "application/json")
    assert answer.status_code == status, answer.content
    assert not AxisClearance.objects.exists()


def test_only_a_held_scenario_is_cleared(client: Client, project: Project) -> None:
    row = make_scenario(project, status="draft", bundle={"axes": AXES})
    answer = client.post(
        f"/api/v1/scenarios/{row.pk}/clear-axes", {"axes": ["task"], "comment": "x"}, "application/json"
    )
    assert (answer.status_code, answer.json()["code"]) == (409, "not_held")


def test_the_page_shows_the_mismatch_and_clears_it(client: Client, project: Project) -> None:
    row = held(project)
    page = client.get(reverse("scenario-page", args=["shell", row.pk])).content.decode()
    assert "the announcement is of kind “motd”" in page and "Unchecked" in page and 'name="comment"' in page
    url = reverse("scenario-clear-axes", args=["shell", row.pk])
    stale = client.post(url, {"axis": ["announcement"], "comment": "fine", "version": "9"}, follow=True)
    assert Scenario.objects.get().status == "held", stale.content
    client.post(url, {"axis": ["announcement"], "comment": "fine", "version": "1"})
    assert Scenario.objects.get().status == "admitted"
    page = client.get(reverse("scenario-page", args=["shell", row.pk])).content.decode()
    assert "Cleared by ada" in page and 'name="comment"' not in page
    assert GateReport.objects.get().verdict == "held"


def test_the_bundle_of_the_tests_is_what_it_claims(project: Project) -> None:
    assert gate(make_scenario(project, status="draft", bundle={"axes": BUNDLE["axes"]})).status == "admitted"
