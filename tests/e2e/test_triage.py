"""Samples triaged by keys only, through five undos, a lost network and a server restart: the log has every step."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connection
from playwright.sync_api import Browser, Page, expect

from curation.projects.models import Project
from curation.review.models import Action, Decision, Pick
from curation.samples.models import Sample, SampleStatus
from tests.e2e.conftest import tab_of
from tests.factories import make_duel, make_member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
# Messages of the console about the lost network and the server that is away.
EXPECTED = ("ERR_INTERNET", "ERR_CONNECTION", "ERR_EMPTY", "htmx:sendError", "htmx:afterRequest")
STATUS = {
    Action.APPROVE: SampleStatus.APPROVED,
    Action.REJECT: SampleStatus.REJECTED,
    Action.REFINE: SampleStatus.NEEDS_REFINE,
}
# Said of a decision that waits, and of one behind which the next sample is shown already.
UNREACHABLE = "could not be reached"
# The intended result for a sample: its status and its kept text.
Meant = tuple[str, str]


class Server:
    """gunicorn on the test's own database, which can be started again at the same address."""

    def __init__(self, data: Path) -> None:
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            self._port = int(listening.getsockname()[1])
        self.url = f"http://127.0.0.1:{self._port}"
        name = connection.settings_dict["NAME"]
        on_sqlite = connection.vendor == "sqlite"
        url = f"sqlite:///{name}" if on_sqlite else urlsplit(settings.DATABASE_URL)._replace(path=f"/{name}").geturl()
        own = {"WINNOW_DATA": str(data), "DATABASE_URL": url, "SECRET_KEY": settings.SECRET_KEY}
        self._environment = {**os.environ, **own, "PORT": str(self._port), "WEB_PROCESSES": "1", "LOG_LEVEL": "ERROR"}
        self.start()

    def start(self) -> None:
        command = [str(Path(sys.executable).parent / "gunicorn"), "config.wsgi:application", "--graceful-timeout", "1"]
        self._process = subprocess.Popen(command, env=self._environment, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
                return
            except OSError:
                assert self._process.poll() is None and time.monotonic() < until, "the server did not start"
                time.sleep(0.05)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(40)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started = Server(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def tab(browser: Browser, server: Server, project: Project) -> Iterator[Page]:
    with tab_of(browser, server, make_member(project), expected=EXPECTED) as page:
        yield page


def ready(tab: Page) -> int:
    """Wait until keys act; return the id of the sample."""
    expect(tab.locator("#review[data-sample]")).to_be_visible()
    tab.evaluate("() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))")
    expect(tab.locator('[aria-busy="true"]')).to_have_count(0)
    expect(tab.locator("html[data-keys-wait]")).to_have_count(0)
    return int(tab.locator("#review").get_attribute("data-sample") or 0)


def decide(tab: Page, turn: int) -> Meant:
    """Decide the sample on the page by keys; every fifth is rejected and every seventh gets a new text."""
    press = tab.keyboard.press
    if turn % 5 == 4:
        press("x")
        expect(tab.locator("#ask-reason")).to_be_visible()
        press("1")
        return SampleStatus.REJECTED, ""
    side = ("left", "right")[turn % 2]
    text = tab.locator(f"#seat-{side} code").inner_text()
    press("12"[turn % 2])
    if turn % 7 != 3:
        press("a")
        return SampleStatus.APPROVED, text
    press("e")
    expect(tab.locator("#refine-text")).to_be_focused()
    press("Control+a")
    tab.keyboard.insert_text(f"THOUGHT: better\n\n```bash\nbetter {turn}\n```")
    press("Control+Enter")
    return SampleStatus.APPROVED, f"better {turn}"


@pytest.mark.slow
@pytest.mark.parametrize("count", [12, pytest.param(100, marks=pytest.mark.timeout(1200))])
def test_the_log_replayed_is_what_was_meant(tab: Page, project: Project, server: Server, count: int) -> None:
    for n in range(count):
        king, challenger = (f"THOUGHT: look\n\n```bash\n{side} {n}\n```" for side in ("king", "challenger"))
        make_duel(project, priority=float(n), king=king, challenger=challenger)
    undone = {count * n // 6 for n in range(1, 6)}
    meant: dict[int, Meant] = {}
    tab.goto("/p/billing/queue/")
    for turn in range(count):
        sample = ready(tab)
        if turn == count // 3:
            tab.context.set_offline(True)
            decide(tab, 0)
            expect(tab.locator(".toast", has_text=UNREACHABLE)).to_be_visible()
            tab.context.set_offline(False)
            expect(tab.locator(".toast", has_text=UNREACHABLE)).to_have_count(0)
            assert ready(tab) == sample
            tab.keyboard.press("1")  # takes the pick back
        if turn == 2 * count // 3:
            server.stop()
            decide(tab, 0)
            expect(tab.locator(".toast", has_text=UNREACHABLE)).to_be_visible()
            server.start()
            assert ready(tab) == sample
            tab.keyboard.press("1")
        meant[sample] = decide(tab, turn)
        if turn in undone:
            done = tab.locator(".review__last", has_text=f"Sample {sample}:")
            expect(done).to_be_visible()
            ready(tab)
            tab.keyboard.press("z")
            expect(tab.locator("#review")).to_have_attribute("data-sample", str(sample))
            ready(tab)
            tab.keyboard.press("x")
            tab.keyboard.press("0")
            meant[sample] = (SampleStatus.REJECTED, "")
    expect(tab.get_by_role("heading", name="Everything is decided")).to_be_visible()

    assert len(meant) == count
    assert Decision.objects.filter(action=Action.UNDO).count() == 5
    assert replayed(project) == meant
    assert dict(Sample.objects.values_list("id", "status")) == {pk: status for pk, (status, _) in meant.items()}


def replayed(project: Project) -> dict[int, Meant]:
    """Return the state of each sample by the log alone; an undo takes the last line back."""
    lines: dict[int, list[Decision]] = {}
    for line in Decision.objects.select_related("revision", "sample__duel__king__text").order_by("id"):
        if line.action == Action.UNDO:
            lines[line.sample_id].pop()
        elif line.action in STATUS:
            lines.setdefault(line.sample_id, []).append(line)
    return {pk: (STATUS[Action(left[-1].action)], kept(left[-1])) for pk, left in lines.items()}


def kept(line: Decision) -> str:
    if line.action != Action.APPROVE:
        return ""
    duel = line.sample.duel
    answer = duel.king if line.pick == Pick.KING else duel.challenger
    assert answer is not None
    text = line.revision.text if line.revision else answer.text.text
    return text.split("```bash\n")[1].split("\n")[0]
