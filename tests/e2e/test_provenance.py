"""From an exported row to every call that made it in two clicks, and from a call back, in real Chromium."""

import hashlib
from collections.abc import Iterator, Sequence
from decimal import Decimal

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from curation.duels.models import Answer
from curation.exports.models import Export
from curation.projects.models import Project
from curation.runs.models import Call, Item
from curation.web.text.figures import money
from tests.e2e.conftest import tab_of
from tests.exports.exporting import content, make_kept, make_pair, run_export
from tests.exports.provenance.test_trace import make_call, make_item, traced_sample
from tests.factories import make_member, make_scenario, make_trajectory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def tab(browser: Browser, live_server: LiveServer, project: Project) -> Iterator[Page]:
    with tab_of(browser, live_server, make_member(project, role="viewer")) as page:
        yield page


def open_row(tab: Page, export: Export, file: str) -> str:
    """Two clicks from the export's page to the first row of a file; returns the row's SHA-256."""
    sha = hashlib.sha256(content(export, file).splitlines(keepends=True)[0]).hexdigest()
    tab.goto(f"/p/billing/exports/{export.pk}/")
    tab.get_by_role("link", name="Rows and the calls behind them").click()
    tab.get_by_role("link", name=sha[:12]).click()
    expect(tab.locator("h1")).to_have_text("Origin of this row")
    return sha


def expect_calls(tab: Page, steps: Sequence[tuple[str, Sequence[Call]]]) -> None:
    """Each step has its calls below it, each with its model and price."""
    groups = tab.locator("#content tbody")
    expect(groups).to_have_count(len(steps))
    for number, (title, calls) in enumerate(steps):
        lines = groups.nth(number).locator("tr")
        expect(lines.first).to_have_text(title)
        expect(groups.nth(number).locator("[data-row]")).to_have_count(len(calls))
        for call in calls:
            line = lines.filter(has=tab.get_by_role("link", name=str(call.pk), exact=True))
            expect(line).to_contain_text("model-a")
            expect(line).to_contain_text(money(call.cost))


def expect_way_back(tab: Page, call: Call, export: Export, sha: str) -> None:
    """A click on the call shows the export, and a click there the same row."""
    row = tab.url
    tab.locator("table").get_by_role("link", name=str(call.pk), exact=True).click()
    expect(tab.get_by_role("link", name=f"Export {export.pk}")).to_be_visible()
    tab.get_by_role("link", name=sha[:12]).click()
    expect(tab).to_have_url(row)


def test_a_row_of_a_duel(tab: Page, project: Project) -> None:
    sample, (failed, answered, *judged) = traced_sample(project)
    duel = sample.duel
    assert duel.king is not None
    king = make_call(make_item(project, "1:0", "king"), cost="0.125")
    Answer.objects.filter(duels_as_king=duel).update(call=king)
    export = run_export(project, {"formats": ["dpo"]})

    sha = open_row(tab, export, "dpo.train.jsonl")

    verdicts = duel.verdicts.order_by("judge", "order")
    expect_calls(
        tab,
        [
            (f"Challenger's answer by {duel.challenger.model}", [failed, answered]),
            (f"King's answer by {duel.king.model}", [king]),
            *(
                (f"Verdict by {row.judge}, {row.get_order_display().lower()}", judged[number : number + 1])
                for number, row in enumerate(verdicts)
            ),
        ],
    )
    expect(tab.locator(".figure", has_text="Cost")).to_contain_text("$0.885")
    expect(tab.locator(".figure", has_text="Cost")).to_contain_text("1 call of unknown cost")
    for call in (failed, answered, king, *judged):
        expect_way_back(tab, call, export, sha)


def test_a_pair_of_sessions_whose_scenario_a_model_wrote(tab: Page, project: Project) -> None:
    author = make_item(project, "1", "author")
    written = [make_call(author, cost="0.5"), make_call(author, cost="0.25", attempt=2)]
    scenario = make_scenario(project, "leave a greeting", run=author.run, authored_by="model-a")
    Item.objects.filter(pk=author.pk).update(result={"scenario": str(scenario.pk)})
    rollout = make_item(project, f"{scenario.pk}:0", "rollout")
    turns = [make_call(rollout, cost="0.01"), make_call(rollout, cost=None)]
    other = Item.objects.create(
        run=rollout.run, stage="rollout", key=f"{scenario.pk}:1", state="done", result={"reused_calls": [turns[0].pk]}
    )
    lost = make_call(other, cost="0.02")
    chosen = make_kept(project, scenario, run=rollout.run)
    rejected = make_trajectory(
        project, scenario, run=rollout.run, sample_index=1, commands=("false",), outcome="checker_failed"
    )
    make_pair(chosen, rejected)
    export = run_export(project, {"formats": ["dpo"]})

    sha = open_row(tab, export, "dpo.train.jsonl")

    expect_calls(
        tab,
        [
            ("Rollout of leave a greeting by operator-a", turns),
            ("Rollout of leave a greeting by operator-a", [turns[0], lost]),
            ("Scenario leave a greeting, author: model-a", written),
        ],
    )
    total = sum((call.cost for call in {*written, *turns, lost} if call.cost is not None), Decimal(0))
    expect(tab.locator(".figure", has_text="Cost")).to_contain_text(money(total))
    for call in (*written, lost):
        expect_way_back(tab, call, export, sha)
