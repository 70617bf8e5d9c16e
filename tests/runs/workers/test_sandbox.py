"""Isolation of commands on this machine: the workers' reports, its own, and the consequences."""

import threading
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from curation.runs.models import Item, ItemState, WorkerSeen
from curation.runs.workers import housekeeping, presence, sandbox, sandbox_report
from curation.runs.workers.sandbox import NoSandbox, labels_of, reap_sandboxes
from curation.runs.workers.sandbox_report import SandboxReport, require_sandbox, sandbox_reports, try_sandbox
from sandbox.errors import SandboxFailed
from sandbox.protocol import BackendFinding, Labels, SandboxBackend, SandboxSession, Setup
from tests.factories import make_project, make_run

pytestmark = pytest.mark.django_db
WORKS = [BackendFinding("engine", True, "here"), BackendFinding("session", True, "opened, used and removed")]
MISSING = [BackendFinding("engine", False, "no engine answers.", "Start Docker.")]


class LeftBehind:
    """A backend with the sandboxes of several workers on it."""

    name = "docker"

    def __init__(self, *labels: Labels) -> None:
        self.labels = list(labels)

    def session(self, setup: Setup) -> SandboxSession:
        raise SandboxFailed("not in this test")

    def findings(self) -> Sequence[BackendFinding]:
        return WORKS

    def reap(self, is_alive: Callable[[Labels], bool]) -> int:
        before = len(self.labels)
        self.labels = [labels for labels in self.labels if is_alive(labels)]
        return before - len(self.labels)


@pytest.fixture
def nothing_here(monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path) -> None:
    """A machine with neither an engine nor bubblewrap, whose folder is new."""
    settings.SANDBOX, settings.WINNOW_DATA = "auto", tmp_path
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.setenv("PATH", str(tmp_path))


def _worker(name: str, report: SandboxReport | None, queues: str = "llm,sandbox") -> None:
    told = report.model_dump(mode="json", exclude={"place"}) if report else {}
    now = timezone.now()
    WorkerSeen.objects.create(name=name, queues=queues, started_at=now, seen_at=now, sandbox=told)


def _claimed(item_key: str, owner: str, state: str = ItemState.CLAIMED) -> Item:
    run = make_run(make_project(), kind="rollout")
    return Item.objects.create(run=run, stage="rollout", key=item_key, state=state, lease_owner=owner)


class TestWhatWorkersTell:
    def test_it_counts_before_what_this_process_sees(self, nothing_here: None) -> None:
        _worker("sandbox@one", SandboxReport(backend="docker", findings=WORKS))
        require_sandbox()
        (report,) = sandbox_reports()
        assert (report.place, report.works, report.detail) == ("sandbox@one", True, "docker")

    def test_one_that_works_is_enough(self, nothing_here: None) -> None:
        _worker("sandbox@one", SandboxReport(findings=MISSING))
        _worker("sandbox@two", SandboxReport(backend="docker", findings=WORKS))
        require_sandbox()

    def test_where_none_works_a_launch_is_refused_with_what_to_do(self, nothing_here: None) -> None:
        _worker("sandbox@one", SandboxReport(findings=MISSING))
        with pytest.raises(NoSandbox, match=r"sandbox@one: engine: no engine answers\. Start Docker\."):
            require_sandbox()

    def test_workers_of_other_queues_are_not_asked(self, nothing_here: None) -> None:
        _worker("llm@one", SandboxReport(backend="docker", findings=WORKS), queues="llm,default")
        with pytest.raises(NoSandbox, match="install bubblewrap"):
            require_sandbox()

    def test_a_worker_tells_after_its_first_round(
        self, nothing_here: None, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told: dict[str, object] = {}
        monkeypatch.setattr(presence, "_sandbox", told)
        housekeeping.clean_up_once()
        assert told["backend"] == ""
        assert "no engine answers at unix:///nowhere/docker.sock" in str(told["findings"])


class TestThisMachine:
    def test_the_first_that_works_is_used(self, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
        settings.SANDBOX = "auto"
        found = {"docker": MISSING, "bubblewrap": WORKS}
        monkeypatch.setattr(sandbox_report, "findings_of", lambda name, folder: found[name])
        assert try_sandbox() == SandboxReport(backend="bubblewrap", findings=WORKS)

    def test_a_missing_image_is_not_made_up_for_by_another_backend(
        self, monkeypatch: pytest.MonkeyPatch, settings: Settings
    ) -> None:
        settings.SANDBOX = "docker"
        found = {"docker": MISSING, "bubblewrap": WORKS}
        monkeypatch.setattr(sandbox_report, "findings_of", lambda name, folder: found[name])
        assert not try_sandbox().works

    def test_a_slow_engine_does_not_hold_up_the_page(
        self, monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
    ) -> None:
        over = threading.Event()
        settings.SANDBOX, settings.WINNOW_DATA = "docker", tmp_path
        monkeypatch.setattr(sandbox_report, "PAGE_SECONDS", 0.05)
        monkeypatch.setattr(sandbox_report, "try_sandbox", lambda: over.wait(30) and SandboxReport())
        (report,) = sandbox_reports()
        over.set()
        assert (report.works, report.detail) == (False, "not known yet")


class TestShown:
    def test_ready_tells_it_and_does_not_depend_on_it(self, client: Client, nothing_here: None) -> None:
        _worker("sandbox@one", SandboxReport(findings=MISSING))
        answer = client.get("/api/v1/ready").json()
        assert answer["ready"]
        assert answer["sandboxes"] == [
            {
                "backend": "",
                "findings": [
                    {"name": "engine", "works": False, "detail": "no engine answers.", "remedy": "Start Docker."}
                ],
            }
        ]
        part = next(part for part in answer["parts"] if part["name"] == "sandbox")
        assert part == {
            "name": "sandbox",
            "ok": False,
            "needed": False,
            "detail": "engine: no engine answers. Start Docker.",
        }

    def test_ready_answers_while_the_database_is_away(
        self, client: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails() -> list[WorkerSeen]:
            raise OperationalError("no connection")

        settings.SANDBOX = "none"
        monkeypatch.setattr(sandbox_report, "workers_alive", fails)
        assert client.get("/api/v1/ready").json()["sandboxes"] == [{"backend": "", "findings": []}]

    @pytest.mark.usefixtures("signed_in", "nothing_here")
    def test_the_system_page_lists_the_findings(self, client: Client) -> None:
        _worker("sandbox@one", SandboxReport(findings=MISSING))
        page = client.get("/p/acme/system/").content.decode()
        assert "sandbox@one" in page
        assert "Start Docker." in page


class TestReaping:
    def test_what_nobody_holds_goes_and_what_somebody_holds_stays(self, monkeypatch: pytest.MonkeyPatch) -> None:
        held = _claimed("1:0", "worker-a")
        taken_over = _claimed("2:0", "worker-b")
        given_back = _claimed("3:0", "worker-c", state=ItemState.PENDING)
        stale = {**labels_of(taken_over), "lease": "worker-dead"}
        left: SandboxBackend = (
            behind := LeftBehind(labels_of(held), stale, labels_of(given_back), {"item": "no number"})
        )
        monkeypatch.setattr(sandbox, "choose_backend", lambda wanted, folder: left)
        assert reap_sandboxes() == 3
        assert behind.labels == [labels_of(held)]

    def test_where_no_backend_is_there_is_nothing_to_reap(self, nothing_here: None) -> None:
        assert reap_sandboxes() == 0

    def test_an_engine_that_is_away_ends_no_worker(self, nothing_here: None, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails() -> int:
            raise SandboxFailed("Docker: no engine answers")

        monkeypatch.setattr(housekeeping, "reap_sandboxes", fails)
        housekeeping.clean_up_once()


class TestCommand:
    def test_check_ends_with_1_where_nothing_works(self, nothing_here: None) -> None:
        said = StringIO()
        with pytest.raises(SystemExit) as ended:
            call_command("sandbox", "check", stdout=said)
        assert ended.value.code == 1
        assert "✗ engine: Docker: no engine answers at unix:///nowhere/docker.sock" in said.getvalue()
        assert "Start Docker" in said.getvalue()
        assert "SANDBOX=auto: nothing works" in said.getvalue()

    def test_build_says_what_it_cannot_find(self, nothing_here: None, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match="There is no file"):
            call_command("sandbox", "build", "--rootfs", str(tmp_path / "none.tar"))
        with pytest.raises(CommandError, match="no engine answers"):
            call_command("sandbox", "build")
        with pytest.raises(CommandError, match="mmdebstrap is not installed"):
            call_command("sandbox", "build", "--make-rootfs", str(tmp_path / "rootfs.tar"))
