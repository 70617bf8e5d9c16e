"""The open panel is in the address: Back closes it, and the link opens it."""

import re

import pytest
from playwright.sync_api import Page, expect

from curation.projects.models import Project
from tests.e2e.test_review import duels
from tests.factories import make_project

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def project() -> Project:
    return make_project("billing", settings_json={"review": {"blind": False}})


def test_back_closes_the_panel_and_its_link_opens_it(tab: Page, project: Project) -> None:
    first, second = duels(project, 2)
    tab.goto("/p/billing/samples/?status=pending")
    tab.wait_for_load_state("networkidle")
    panel = tab.locator("#panel")
    tab.locator(f"#sample-{first.pk} [data-row-focus]").click()
    expect(panel).to_contain_text("Review it")
    expect(tab).to_have_url(re.compile(rf"status=pending#open=sample-{first.pk}$"))
    tab.locator(f"#sample-{second.pk} [data-row-focus]").click()
    expect(tab).to_have_url(re.compile(rf"#open=sample-{second.pk}$"))
    link = tab.url
    tab.go_back()
    expect(panel).to_be_hidden()
    expect(tab).to_have_url(re.compile(r"status=pending$"))
    tab.goto("about:blank")
    tab.goto(link)
    expect(panel).to_contain_text("Review it")
    tab.wait_for_load_state("networkidle")
    tab.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(tab).to_have_url(re.compile(r"status=pending$"))
