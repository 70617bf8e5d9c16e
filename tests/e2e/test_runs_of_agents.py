"""From the runs of one's own agent to files for a trainer, in real Chromium and without a model call."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenTab
from tests.e2e.harbor_job import job
from tests.product import Product

pytestmark = [pytest.mark.long, pytest.mark.browser]


def press(tab: Page, key: str) -> None:
    """Press a key when the page has come to rest."""
    tab.wait_for_load_state("networkidle")
    tab.keyboard.press(key)


def ended(tab: Page) -> None:
    tab.wait_for_url(re.compile(r"/runs/\d+/$"))
    expect(tab.locator("#run-live .badge--solid").first).to_have_text("succeeded", timeout=60_000, ignore_case=True)


@pytest.mark.slow
def test_a_harbor_job_becomes_files_for_sft_and_dpo(open_tab: OpenTab, product: Product) -> None:
    product.api.post("/projects", json={"slug": "agents", "name": "Agents"}).raise_for_status()
    tab = open_tab().page
    tab.goto("/p/agents/imports/new/?kind=trajectories")
    tab.locator("#id_file").set_input_files({"name": "job.zip", "mimeType": "application/zip", "buffer": job()})
    tab.get_by_role("button", name="Preview").press("Enter")
    expect(tab.locator("#preview")).to_contain_text("3 steps, solved, reward 1")
    press(tab, "Control+Enter")
    ended(tab)

    tab.get_by_role("link", name="Show the trajectories").press("Enter")
    tab.get_by_role("link", name="Solved").press("Enter")
    tab.locator("tr[data-row] a").first.press("Enter")
    expect(tab.locator(".exchange").nth(1)).to_contain_text("cat orders.csv")
    press(tab, "o")
    expect(tab.locator("#review")).to_be_visible()
    press(tab, "a")
    expect(tab.locator("main")).to_contain_text("approved", ignore_case=True)

    tab.goto("/p/agents/runs/new/?kind=pairs")
    tab.locator("#id_source").select_option("trajectories")
    press(tab, "Control+Enter")
    ended(tab)

    tab.goto("/p/agents/exports/new/")
    for name in ("sft-messages", "dpo"):
        tab.locator(f'input[name="formats"][value="{name}"]').check()
    press(tab, "Control+Enter")
    tab.wait_for_url(re.compile(r"/(exports|runs)/\d+/$"))
    (export,) = product.rows("/projects/agents/exports")
    product.wait(product.get(f"/runs/{export['run']}"))
    tab.reload()
    expect(tab.locator("main")).to_contain_text("dpo.train.jsonl")
    files = product.get(f"/exports/{export['id']}")["files"]
    rows = {file["format"]: file["rows"] for file in files if file["format"]}
    assert rows == {"sft-messages": 1, "dpo": 1}
