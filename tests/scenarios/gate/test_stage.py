import threading
from collections.abc import Iterator
from typing import Any

import pytest

from curation.projects.models import Project
from curation.runs.engine import dispatch
from curation.runs.launch import launch
from curation.runs.models import Item, Run
from curation.runs.workers import sandbox
from curation.runs.workers.sandbox import NoSandbox
from curation.scenarios.bundles.document import parse_bundle
from curation.scenarios.bundles.save import save_scenario
from curation.scenarios.gate.stage import gates_at_once, subject_of
from curation.scenarios.models import GateReport, Scenario
from curation.web.problems import Invalid
from sandbox.errors import SandboxFailed, SandboxUnavailable
from sandbox.protocol import SandboxBackend, SandboxSession, Setup
from tests.driving import end
from tests.factories import BUNDLE, make_project, make_scenario
from tests.sandbox.fake import FakeBackend, FakeSession

pytestmark = pytest.mark.django_db(transaction=True)


def has_greeting(session: FakeSession) -> bool:
    return any("hello world" in command for command in session.commands)


def documented(session: FakeSession, command: str) -> str:
    """A machine whose only documentation is `--help`."""
    return "usage: todo\n" if command.endswith(" --help") else ""


@pytest.fixture(autouse=True)
def no_bell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBackend]:
    found = FakeBackend(documented, passes=has_greeting)

    def choose(*_: object, **__: object) -> SandboxBackend:
        return found

    monkeypatch.setattr(sandbox, "choose_backend", choose)
    yield found
    assert all(session.closed for session in found.sessions)


def gated(project: Project, **params: Any) -> Run:
    return end(launch(project=project, kind="gate", params=params, user=None))


def test_a_proven_scenario_is_admitted_with_its_report(rooms: FakeBackend) -> None:
    project = make_project()
    scenario = make_scenario(project, status="draft")
    run = gated(project)
    scenario.refresh_from_db()
    assert (scenario.status, scenario.reason) == ("admitted", "")
    report = GateReport.objects.get(scenario=scenario)
    assert (report.verdict, report.run, report.backend) == ("admitted", run, "fake")
    assert report.bundle_sha256 == scenario.bundle_sha256
    assert [check["name"] for check in report.checks] == [
        *("untouched", "bare exit", "bare panic", "reference"),
        *("full disk", "repeat 1", "repeat 2", "what the reference changed", "same state, same verdict"),
        *("pretences on untouched fixtures", "only the documentation", "claims in words"),
    ]
    commands = [line["command"] for line in report.checks[3]["transcript"]]
    assert commands == ["todo > /dev/null", "echo 'hello world' > greeting.txt", "exit", "(the checker)"]
    assert run.result == {"admitted": 1, "rejected": 0, "dry_run": 0}
    assert rooms.sessions[0].setup.labels["item"] == str(Item.objects.get().pk)


def test_a_rejected_scenario_has_a_reason_and_can_be_repaired(rooms: FakeBackend) -> None:
    project = make_project()
    scenario = make_scenario(project, status="draft")
    rooms.passes = lambda session: True
    gated(project, repeats=0)
    scenario.refresh_from_db()
    assert (scenario.status, scenario.reason) == ("rejected", "untouched: the checker passes on the untouched fixtures")
    bundle = parse_bundle({**BUNDLE, "name": scenario.name, "title": "Repaired", "axes": {}})
    save_scenario(project=project, bundle=bundle, user=None, scenario=scenario)
    rooms.passes = has_greeting
    gated(project)
    scenario.refresh_from_db()
    assert (scenario.status, scenario.reason) == ("admitted", "")
    assert [report.verdict for report in scenario.gate_reports.order_by("id")] == ["rejected", "admitted"]


def test_a_bundle_edited_meanwhile_is_not_judged_by_the_old_ones_gate(rooms: FakeBackend) -> None:
    project = make_project()
    scenario = make_scenario(project, status="draft")

    def edits(session: FakeSession, command: str) -> str:
        Scenario.objects.filter(pk=scenario.pk).update(bundle_sha256="f" * 64)
        return ""

    rooms.answers = edits
    run = gated(project)
    scenario.refresh_from_db()
    assert scenario.status == "draft"
    assert GateReport.objects.get().bundle_sha256 != scenario.bundle_sha256
    assert run.result["edited meanwhile"] == 1


def test_a_broken_sandbox_judges_nobody(rooms: FakeBackend) -> None:
    project = make_project()
    scenario = make_scenario(project, status="draft")
    rooms.opening = [SandboxFailed("no room")] * 3
    run = gated(project)
    scenario.refresh_from_db()
    assert (run.state, scenario.status) == ("failed", "draft")
    assert "the sandbox failed, so there is no verdict: no room" in run.error
    assert not GateReport.objects.exists()


def test_admitted_ones_are_left_alone_unless_they_are_named(rooms: FakeBackend) -> None:
    project = make_project()
    scenario = make_scenario(project)
    make_scenario(project, status="draft")
    assert gated(project).items_skipped == 1
    assert gated(project, filter={"id": str(scenario.pk)}).items_done == 1
    assert scenario.gate_reports.count() == 1


class TestDryRun:
    @pytest.fixture(autouse=True)
    def no_sandbox(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def none(*_: object, **__: object) -> None:
            raise SandboxUnavailable("Install bubblewrap.")

        monkeypatch.setattr(sandbox, "choose_backend", none)

    def test_needs_no_sandbox_and_is_marked_as_what_it_is(self) -> None:
        project = make_project()
        scenario = make_scenario(project, status="draft", bundle={"axes": {}})
        run = gated(project, dry_run=True)
        scenario.refresh_from_db()
        assert scenario.status == "dry_run"
        assert (run.result["dry_run"], GateReport.objects.get().backend) == (1, "")
        assert not Scenario.objects.admitted().exists()

    def test_finds_a_broken_structure(self) -> None:
        project = make_project()
        make_scenario(project, status="draft", bundle={"axes": {}, "reference_solution": "echo done"})
        gated(project, dry_run=True)
        scenario = Scenario.objects.get()
        assert scenario.status == "rejected"
        assert "its last line must be" in scenario.reason

    def test_without_it_the_launch_is_refused(self) -> None:
        project = make_project()
        make_scenario(project, status="draft")
        with pytest.raises(NoSandbox, match="Install bubblewrap"):
            gated(project)
        assert not Run.objects.exists()


def test_a_launch_without_scenarios_is_refused(rooms: FakeBackend) -> None:
    with pytest.raises(Invalid, match="No scenario matches"):
        gated(make_project())


class CountedRooms(FakeBackend):
    """Counts the sessions that are open, and lets the first one wait until another scenario's is open too."""

    def __init__(self) -> None:
        super().__init__(documented, passes=has_greeting)
        self.most = 0
        self.meeting = threading.Barrier(2)

    def session(self, setup: Setup) -> SandboxSession:
        opened = super().session(setup)
        self.most = max(self.most, sum(not session.closed for session in self.sessions))
        if len(self.sessions) <= 2:
            self.meeting.wait(timeout=30)
        return opened


def test_scenarios_are_gated_side_by_side_and_the_sandboxes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    found = CountedRooms()
    monkeypatch.setattr(sandbox, "choose_backend", lambda *_, **__: found)
    project = make_project()
    for _ in range(3 * gates_at_once()):
        make_scenario(project, status="draft")
    run = gated(project)
    assert run.result["admitted"] == 3 * gates_at_once()
    assert 2 <= found.most <= 2 * gates_at_once()
    assert all(session.closed for session in found.sessions)


def test_the_marks_of_a_bundle_reach_the_gate() -> None:
    bundle = parse_bundle({**BUNDLE, "name": "marked", "scratch": ["/srv/tmp"], "free_order": ["/srv/list"]})
    subject = subject_of(bundle)
    assert (subject.scratch, subject.free_order) == (("/srv/tmp",), ("/srv/list",))
    assert subject.is_scratch("/srv/tmp/a") and not subject.is_scratch("/srv/tmpl")
    assert "todo" in subject.told
    assert "scratch" not in parse_bundle({**BUNDLE, "name": "plain"}).document()
