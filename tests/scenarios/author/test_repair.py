"""Bundles that the gate refuses go back to the teacher with the report."""

import pytest

from curation.projects.models import Project
from curation.runs.engine import dispatch
from curation.runs.models import Item, ItemState
from curation.scenarios.models import GateReport, Scenario
from sandbox.gate.report import CHECKER
from tests.sandbox.fake import FakeBackend
from tests.scenarios.author.test_stage import PINS, Teacher, authored, project, rooms, teacher, written

__all__ = ["project", "rooms", "teacher"]
pytestmark = pytest.mark.django_db(transaction=True)
LAZY = written(reference_solution="todo > /dev/null\nexit")


@pytest.fixture(autouse=True)
def no_bell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)


def test_a_refused_bundle_goes_back_with_the_report_and_is_gated_again(
    project: Project, teacher: Teacher, rooms: FakeBackend
) -> None:
    teacher.replies = [LAZY, written(name="another name")]
    run = authored(project, n=1, axes=PINS)

    row = Scenario.objects.get()
    assert (row.status, row.name, row.version, row.run_id) == ("admitted", "tidy", 2, run.pk)
    assert run.result["admitted"] == 1
    verdicts = list(GateReport.objects.order_by("id").values_list("verdict", flat=True))
    assert verdicts == ["rejected", "admitted"]
    said = [str(message["content"]) for message in teacher.asked[1].messages]
    assert "todo > /dev/null" in said[2] and "authored_by" not in said[2]
    assert "reference: the checker fails after the reference solution" in said[3]
    assert "$ todo > /dev/null (exit 0)" in said[3] and CHECKER in said[3]
    result = Item.objects.get(stage="repair-1").result
    assert (result["repaired"], result["attempts"]) == (True, 1)
    assert not Item.objects.filter(stage="repair-2").exists()


def test_a_bundle_goes_back_so_often_and_no_more(project: Project, teacher: Teacher, rooms: FakeBackend) -> None:
    others = [written(reference_solution=f"todo > /dev/null\necho {number}\nexit") for number in range(5)]
    teacher.replies = [LAZY, *others]
    run = authored(project, n=1, axes=PINS, repairs=2)

    assert run.result["rejected"] == 1
    assert len(teacher.asked) == 3
    assert Scenario.objects.get().version == 3
    assert GateReport.objects.count() == 3


def test_without_repairs_the_refusal_stays(project: Project, teacher: Teacher, rooms: FakeBackend) -> None:
    teacher.replies = [LAZY, written()]
    run = authored(project, n=1, axes=PINS, repairs=0)

    assert (run.result["rejected"], len(teacher.asked)) == (1, 1)


def test_an_invalid_repair_fails_and_the_scenario_stays_as_it_was(
    project: Project, teacher: Teacher, rooms: FakeBackend
) -> None:
    teacher.replies = [LAZY, "no document"]
    run = authored(project, n=1, axes=PINS, repairs=1, attempts=2)

    row = Scenario.objects.get()
    assert (row.status, row.version) == ("rejected", 1)
    assert (run.state, run.result["scenarios"], run.result["rejected"]) == ("succeeded", 1, 1)
    item = Item.objects.get(stage="repair-1")
    assert item.state == ItemState.FAILED and "the reply is not JSON" in item.reason
