"""Suggest in real Chromium: asked, written, read as changes, put into the editor, saved, told as a story."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Page, expect

from curation.projects.models import Project
from curation.review.models import Draft, Revision
from curation.runs.models import Run
from curation.samples.models import SampleStatus
from tests.driving import (
    end,
    storage,  # noqa: F401 - a fixture of every test here
)
from tests.duels.conftest import models  # noqa: F401 - a fixture
from tests.duels.running import CHALLENGER, KING, Models
from tests.factories import make_duel, make_endpoint
from tests.review.pages.test_browser import page, shot  # noqa: F401 - fixtures
from tests.review.rows import sample_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
# The choice of a person who was faster than the script of the page.
CHOOSES_AT_ONCE = """() => new MutationObserver((_, observer) => {
  observer.disconnect();
  const changes = document.querySelector("#diff-against");
  changes.value = "parent";
  changes.dispatchEvent(new Event("change", { bubbles: true }));
}).observe(document.querySelector("#editor"), { childList: true })"""
BETTER = "THOUGHT: I read what fails first.\n\n```bash\nsed -n '1,80p' IMPROVED\n```"


def test_a_suggestion_from_the_button_to_the_story(page: Page, project: Project, models: Models) -> None:  # noqa: F811
    make_endpoint(project, "teacher", model="fake/teacher", price_in="2.0", price_out="4.0")
    models.says["teacher"] = lambda request: BETTER
    sample = sample_of(make_duel(project, king=KING, challenger=CHALLENGER, status=SampleStatus.NEEDS_REFINE))
    page.goto(f"/p/{project.slug}/samples/{sample.pk}/")
    page.keyboard.press("e")
    expect(page.locator("#refine-text")).to_be_focused()
    page.get_by_label("Note").fill("Read the first 80 lines only.")
    page.get_by_role("button", name="Suggest").click()
    expect(page.locator("#suggestion")).to_contain_text("Waiting for a worker to ask teacher")
    with ThreadPoolExecutor(1) as worker:  # this thread has Playwright's loop
        worker.submit(lambda: end(Run.objects.latest("pk"))).result()
    expect(page.locator("#suggestion ins")).to_contain_text(["first", "IMPROVED"])
    expect(page.locator(".suggestion__text")).to_be_in_viewport(ratio=1)  # the foot of the editor covers nothing of it
    foot, text = page.locator(".editor__foot").bounding_box(), page.locator(".suggestion__text").bounding_box()
    assert foot and text and text["y"] + text["height"] <= foot["y"]
    assert not Draft.objects.filter(text=BETTER).exists()
    shot(page, "suggestion")

    page.evaluate(CHOOSES_AT_ONCE)
    page.get_by_role("button", name="Put it into the editor").click()
    expect(page.locator("#refine-text")).to_have_value(BETTER)
    expect(page.locator("#editor-diff ins")).to_contain_text(["first", "IMPROVED"])
    page.locator("#refine-text").press("Control+End")
    page.keyboard.type("\nthen stop")
    expect(page.locator("#editor-diff")).to_contain_text("then stop")
    shot(page, "suggestion-used")
    page.get_by_role("button", name="Save", exact=True).click()

    story = page.locator(".story")
    expect(story).to_contain_text("From teacher's suggestion, edited")
    assert Revision.objects.get().suggestion.model == "teacher"
    shot(page, "story")
    page.set_viewport_size({"width": 400, "height": 800})
    page.emulate_media(color_scheme="dark")
    page.locator("[data-edit]").click()
    expect(page.locator("#suggest")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    shot(page, "editor-narrow-dark")
