"""Rounds of self-training: a round trip with scripted operators, and what stops a round."""

import pytest
from django.test import Client
from django.urls import reverse

from curation.exports.models import Export, Round
from curation.exports.rounds.start import export_reviewed_rounds
from curation.projects.models import AuditEntry, Member, Project, Role
from curation.runs.models import Run
from curation.samples.models import SampleStatus
from curation.scenarios.models import Scenario
from curation.trajectories.models import Trajectory
from tests.driving import end
from tests.factories import AXES, make_endpoint, make_project, make_scenario, make_user
from tests.sandbox.fake import FakeBackend
from tests.trajectories.conftest import no_bell, operators, rooms  # noqa: F401 - fixtures
from tests.trajectories.rolling import SOLVES, Operators

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/api/v1/projects/shell/rounds"
JSON = "application/json"


@pytest.fixture
def project(client: Client, rooms: FakeBackend, operators: Operators) -> Project:  # noqa: F811
    """Two scenarios; `student-0` solves none, `student-1` both."""
    ada = make_user("ada")
    client.force_login(ada)
    project = make_project("shell", user=ada)
    for name in ("student-0", "student-1"):
        make_endpoint(project, name, model=f"fake/{name}")
    make_scenario(project, "first")
    make_scenario(project, "second", bundle={"axes": {**AXES, "task": "cleanup"}})
    operators.scripts["student-1"] = SOLVES
    operators.scripts["student-0"] = ("todo", "exit")
    return project


def start(client: Client, **body: object) -> Round:
    answer = client.post(URL, {"rollout": {"samples": 1}, **body} if "before" not in body else body, JSON)
    assert answer.status_code == 202, answer.content
    row = Round.objects.get(pk=answer.json()["id"])
    end(row.rollout)
    return row


def decide(client: Client, action: str, *, keep_back: int = 0) -> None:
    rows = Trajectory.objects.filter(keep=True, sample__status=SampleStatus.PENDING).order_by("id")
    for row in rows[: rows.count() - keep_back]:
        answer = client.post(f"/api/v1/samples/{row.sample_id}/decisions", {"action": action}, JSON)
        assert answer.status_code in (200, 201), answer.content


def get(client: Client, row: Round) -> dict[str, object]:
    answer = client.get(f"/api/v1/rounds/{row.pk}")
    assert answer.status_code == 200
    found: dict[str, object] = answer.json()
    return found


def exported(row: Round) -> Export:
    row.refresh_from_db()
    assert row.export is not None
    end(row.export.run)
    return Export.objects.get(pk=row.export.pk)


def test_a_round_trip_from_rollout_to_the_next_round(client: Client, project: Project, operators: Operators) -> None:  # noqa: F811
    Scenario.objects.filter(name="second").update(status="held")
    operators.scripts["student-0"] = SOLVES
    first = start(client, operator="student-0")
    Scenario.objects.filter(name="second").update(status="admitted")
    found = get(client, first)
    kept = 1
    assert (found["state"], found["rows"], found["export"]) == ("review", 0, None)
    assert found["says"] == "Waiting for review: 1 of 1 kept trajectory is undecided."
    refused = client.post(f"/api/v1/rounds/{first.pk}/export", {}, JSON)
    assert (refused.status_code, refused.json()["code"]) == (409, "not_ready")
    early = client.post(URL, {"operator": "student-1", "before": str(first.pk)}, JSON)
    assert (early.status_code, early.json()["code"]) == (409, "no_export")
    assert export_reviewed_rounds() == 0

    decide(client, "approve")
    assert get(client, first)["state"] == "ready"
    Member.objects.update(role=Role.REVIEWER)  # who started the round may not export any more
    assert export_reviewed_rounds() == 0
    Member.objects.update(role=Role.CURATOR)
    assert export_reviewed_rounds() == 1 and export_reviewed_rounds() == 0
    export = exported(first)
    assert export.recipe["filter"] == {"status": "approved", "run": str(first.rollout_id)}
    found = get(client, first)
    assert (found["state"], found["rows"]) == ("done", kept)

    second = start(client, operator="student-1", before=str(first.pk))
    assert (second.number, second.chain) == (2, first.pk)
    after = get(client, second)
    assert (after["scenarios_solved"], after["new_scenarios_solved"]) == (2, 1)
    rates = {f"{axis['axis']}={axis['value']}": axis["rate"] for axis in after["by_axis"]}  # type: ignore[attr-defined]
    assert (rates["task=file-edit"], rates["task=cleanup"], rates["provider=script"]) == (1.0, 1.0, 1.0)

    page = client.get(reverse("round-list", args=["shell"])).content.decode()
    assert "Round 1" in page and "Round 2" in page and "student-1" in page and "100 % (34–100 %), n 2" in page
    assert "Waiting for review: 2 of 2" in page and "cleanup" in page
    listed = client.get(URL).json()["data"]
    assert [row["number"] for row in listed] == [2, 1]
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"round.start", "round.export"} <= actions

    ended = Trajectory.objects.filter(run=second.rollout_id, scenario__name="second")
    assert ended.update(outcome="infra_error", keep=False) == 1
    rate: dict[str, object] = get(client, second)["rate"]  # type: ignore[assignment]
    assert (rate["tried"], rate["rate"], rate["lost"]) == (1, 1.0, 1)
    page = client.get(reverse("round-list", args=["shell"])).content.decode()
    assert "100 % (21–100 %), n 1, incomplete: the machine ended 1" in page


def test_nothing_leaves_that_nobody_approved(client: Client, project: Project, operators: Operators) -> None:  # noqa: F811
    operators.scripts["student-0"] = SOLVES
    row = start(client, operator="student-0")
    decide(client, "approve", keep_back=1)
    assert export_reviewed_rounds() == 0
    answer = client.post(f"/api/v1/rounds/{row.pk}/export", {"without_pending": True}, JSON)
    assert answer.status_code == 202, answer.content
    exported(row)
    assert (get(client, row)["rows"], get(client, row)["pending"]) == (1, 1)
    assert AuditEntry.objects.get(action="round.export").data["left_out"] == 1


def test_rejected_or_unsolved_rounds_say_so_and_export_nothing(
    client: Client,
    project: Project,
    operators: Operators,  # noqa: F811
) -> None:
    unsolved = start(client, operator="student-0")
    assert (get(client, unsolved)["state"], get(client, unsolved)["kept"]) == ("nothing", 0)
    rejected = start(client, operator="student-1")
    decide(client, "reject")
    assert str(get(client, rejected)["says"]).startswith("People approved none of 2")
    assert export_reviewed_rounds() == 0
    assert client.post(f"/api/v1/rounds/{rejected.pk}/export", {}, JSON).status_code == 409
    assert not Run.objects.filter(kind="export").exists()


def test_what_cannot_start_is_refused_and_writes_nothing(client: Client, project: Project) -> None:
    for body, path in (
        ({"operator": "nobody"}, "operator"),
        ({"operator": "student-0", "rollout": {"turns": 1}}, "params.turns"),
        ({"operator": "student-0", "formats": ["csv"]}, ""),
        ({"operator": "student-0", "before": "1", "formats": ["dpo"]}, "before"),
    ):
        refused = client.post(URL, body, JSON)
        assert refused.status_code == 422 and refused.json()["errors"][0]["path"].startswith(path), refused.json()
    assert not Round.objects.exists() and not Run.objects.exists()
    row = start(client, operator="student-1")
    same = client.post(URL, {"operator": "student-1", "before": str(row.pk)}, JSON)
    assert (same.status_code, same.json()["errors"][0]["path"]) == (422, "operator")
    make_endpoint(project, "renamed", model="fake/student-1")
    unknown = client.post(URL, {"operator": "nobody", "before": str(row.pk)}, JSON)
    assert (unknown.status_code, unknown.json()["errors"][0]["path"]) == (422, "operator")
    renamed = client.post(URL, {"operator": "renamed", "before": str(row.pk)}, JSON)
    assert (renamed.status_code, "the model of round 1" in renamed.json()["errors"][0]["message"]) == (422, True)


def test_the_page_starts_exports_and_continues(client: Client, project: Project) -> None:
    assert "No rounds yet" in client.get(reverse("round-list", args=["shell"])).content.decode()
    client.post(reverse("round-start", args=["shell"]), {"operator": "student-1", "samples": "1"})
    row = Round.objects.get()
    end(row.rollout)
    decide(client, "approve")
    page = client.get(reverse("round-list", args=["shell"])).content.decode()
    assert "Reviewed: 2 of 2" in page and "Export the approved ones" in page
    client.post(reverse("round-export", args=["shell", row.pk]))
    exported(row)
    page = client.get(reverse("round-list", args=["shell"])).content.decode()
    assert "Start round 2" in page and "<option>student-0</option>" in page
    client.post(reverse("round-start", args=["shell"]), {"operator": "student-0", "before": str(row.pk)})
    assert Round.objects.get(number=2).operator == "student-0"
