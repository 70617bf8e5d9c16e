"""A scenario by hand, as a person makes one: written, given another file, looked at without a sandbox, deleted."""

import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import OpenTab
from tests.product import Product

pytestmark = [pytest.mark.long, pytest.mark.browser]


def test_written_by_hand_gated_dry_and_deleted(open_tab: OpenTab, product: Product) -> None:
    tab = open_tab().page
    tab.goto(f"{product.url}/p/demo/scenarios/new/")
    tab.get_by_label("Name").first.fill("by hand and browser")
    rows = tab.locator("[data-row-of=fixture]")
    expect(rows).to_have_count(1)
    for count in (2, 3):
        tab.get_by_role("button", name="Add a file").click()
        expect(rows).to_have_count(count)
    rows.last.get_by_role("button", name="Remove this file").click()
    expect(rows).to_have_count(2)
    rows.last.get_by_label("Path").fill("/srv/notes")
    rows.last.get_by_label("Content").fill("two\nlines\n")
    tab.keyboard.press("Control+Enter")
    tab.wait_for_url("**/scenarios/*/")

    expect(tab.locator("main")).to_contain_text("Not gated")
    row = product.get("/projects/demo/scenarios", name="by hand and browser", full="true")["data"][0]
    assert row["fixtures"][1] == {"path": "/srv/notes", "mode": "644", "content": "two\nlines\n"}

    tab.get_by_text("More").last.click()
    tab.get_by_role("button", name="Gate without a sandbox (dry run)").click()
    tab.wait_for_url("**/runs/*/")
    run = product.get(f"/runs/{tab.url.rstrip('/').rsplit('/', 1)[-1]}")
    assert product.wait(run)["result"]["dry_run"] == 1
    tab.goto(f"{product.url}/p/demo/scenarios/{row['id']}/")
    expect(tab.locator("main")).to_contain_text("never rolled out")

    tab.get_by_text("More").last.click()
    tab.get_by_role("button", name="Delete…").click()
    tab.get_by_role("button", name="Delete Ctrl+Enter").click()
    tab.wait_for_url("**/scenarios/")
    assert product.get("/projects/demo/scenarios", name="by hand and browser")["data"] == []
