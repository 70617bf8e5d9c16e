"""A duel run on real turns is crowned, and the next run is a defence: in real Chromium, against a model server."""

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from zlib import crc32

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.test import Client
from playwright.sync_api import Browser, Page, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from curation.llm.client.completion import CompletionRequest
from curation.llm.client.gateway import client_for
from curation.projects.models import Project
from curation.runs.engine import dispatch
from curation.runs.models import Run
from tests.driving import end
from tests.duels.running import CHALLENGER, KING, Models, Says, fair
from tests.e2e.conftest import Watched
from tests.factories import make_endpoint, make_project, make_user
from tests.imports.bringing import bring
from tests.model_server import ModelServer
from tests.parts import shared_data

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
JUDGES = ["strict", "lenient"]


def lenient(request: CompletionRequest) -> Says:
    """A sound judge that calls up to two dimensions a draw: of two that reply alike, one is a copy."""
    history, _, _ = str(request.messages[-1]["content"]).partition("<answer_1")
    return fair(won=3 + crc32(history.encode()) % 3)(request)


@pytest.fixture
def project(model_server: ModelServer, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Real turns with their records, a king and two challengers on the model server, and sound judges."""
    settings.MEDIA_ROOT = tmp_path / "files"
    judges = Models({"strict": fair(), "lenient": lenient})
    monkeypatch.setattr(
        "curation.runs.engine.llm_stage.client_for", lambda one: judges if one.name in JUDGES else client_for(one)
    )
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)
    panel = {"judges": JUDGES}
    document = {
        "panel": panel,
        "generation": {"king_model": "king", "leak_reader": "reader"},
        "gate": {"resamples": 200},
    }
    project = make_project("court", user=make_user("ada"), settings_json=document)
    for name, text in (("king", KING), ("model-b", CHALLENGER), ("model-c", KING)):
        model_server.behave(name, text=text)
        make_endpoint(project, name, model=f"openai/{name}", api_base=model_server.api_base)
    for name in JUDGES:
        make_endpoint(project, name, model=f"fake/{name}")
    make_endpoint(project, "reader", model="scripted/leak-reader")
    with ThreadPoolExecutor(1) as worker:
        for kind, name in (("turns", "swe_agent_nebius.jsonl"), ("pr_records", "pr_records.jsonl")):
            rows, options = of_more_pull_requests(shared_data("turns", name)), {"count": 40} if kind == "turns" else {}
            work = partial(bring, project, kind, rows, options=options)
            assert worker.submit(_apart, work).result().state == "succeeded"
    return project


def of_more_pull_requests(file: Path) -> bytes:
    """The rows three times, each time as if they were of other pull requests: a verdict needs ten."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    again = [row | {"instance_id": f"{row['instance_id']}{turn}"} for turn in range(3) for row in rows]
    return "".join(f"{json.dumps(row)}\n" for row in again).encode()


@pytest.fixture
def tab(browser: Browser, live_server: LiveServer, project: Project) -> Iterator[Page]:
    client = Client()
    client.force_login(project.members.get().user)
    session = client.cookies[django_settings.SESSION_COOKIE_NAME].value
    context = browser.new_context(base_url=live_server.url, reduced_motion="reduce")
    context.add_cookies([{"name": django_settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    watched = Watched(context.new_page())
    yield watched.page
    context.close()
    assert watched.wrong == []


def _apart(work: Callable[[], Run]) -> Run:
    """Work outside of Playwright's thread, which runs an event loop already."""
    try:
        return work()
    finally:
        connection.close()


def duel(tab: Page, challenger: str) -> Run:
    """Launch a duel run by its form, drive it to its end, and show its page."""
    tab.goto("/p/court/runs/new/?kind=duel")
    tab.get_by_label("Challenger model").select_option(challenger)
    tab.get_by_role("button", name="Launch").click()
    tab.wait_for_url(re.compile(r"/runs/\d+/$"))
    address = tab.url
    tab.goto("about:blank")
    with ThreadPoolExecutor(1) as worker:
        run = worker.submit(_apart, lambda: end(Run.objects.order_by("-pk")[0])).result()
    assert run.state == "succeeded", run.error
    tab.goto(address)
    return run


@pytest.mark.slow
def test_a_duel_run_is_crowned_and_the_next_is_a_defence(tab: Page) -> None:
    first = duel(tab, "model-b")
    assert first.result["accepted"], (first.result["reasons"], first.result["skipped"])
    tab.get_by_role("button", name="Crown model-b").click()
    reign = tab.locator("section", has=tab.get_by_role("heading", name="model-b", exact=True))
    expect(reign).to_contain_text("reigns")

    tab.goto("/p/court/runs/new/?kind=duel")
    expect(tab.get_by_label("King model")).to_have_value("model-b")
    expect(tab.locator("form.form").last).to_contain_text("this run is a defence")
    second = duel(tab, "model-c")
    assert second.result["accepted"] is False and second.result["opponent"]["model"] == "model-b"

    tab.goto("/p/court/duels/reigns/")
    for width, scheme in ((1280, "light"), (1280, "dark"), (400, "light")):
        tab.set_viewport_size({"width": width, "height": 800})
        tab.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        row = tab.get_by_role("row").filter(has_text=f"duel {second.pk}")
        expect(row).to_contain_text("model-c")
        expect(row).to_contain_text("defence")
        assert tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
