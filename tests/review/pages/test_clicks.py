"""A mouse decides no sample that its owner has not seen yet."""

import pytest
from playwright.sync_api import Page, Route, expect

from curation.duels.models import Duel
from curation.projects.models import Project
from curation.review.models import Decision
from tests.review.pages.test_browser import at, duels, page  # noqa: F401 - fixtures
from tests.review.rows import sample_of, show_all

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_click_while_the_sample_is_replaced_decides_nothing(
    page: Page,  # noqa: F811
    project: Project,
    duels: list[Duel],  # noqa: F811
) -> None:
    show_all(project)
    page.goto("/p/billing/queue/")
    at(page, sample_of(duels[0]))
    held: list[Route] = []
    page.route("**/decide/", lambda route: held.append(route))
    reject = page.locator('#review [data-key="x"]')
    box = reject.bounding_box()
    assert box
    page.keyboard.press("a")
    expect(page.locator("#review")).to_have_attribute("aria-busy", "true")
    page.mouse.click(box["x"] + 5, box["y"] + 5)
    expect(page.get_by_text("The click was not used")).to_be_visible()
    expect(page.locator("#ask-reason")).not_to_be_visible()
    held.pop().continue_()
    at(page, sample_of(duels[1]))
    # The same place belongs to the next sample now, and its owner has not read it.
    page.evaluate("document.querySelector('#review').scrollIntoView()")
    expect(page.locator("html[data-keys-wait]")).to_have_count(0)
    reject.click()
    expect(page.locator("#ask-reason")).to_be_visible()
    assert [row.action for row in Decision.objects.all()] == ["approve"]
