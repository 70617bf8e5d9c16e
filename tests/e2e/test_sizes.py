"""The review page at every size, and answers in their form."""

import pytest
from playwright.sync_api import Page, expect

from curation.projects.models import Project
from tests.e2e.test_review import at, press
from tests.factories import make_duel, make_project
from tests.review.rows import sample_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
MARKDOWN = "Use **one** of these:\n\n- a lamp\n- a window\n\n" + "A longer line of prose. " * 60
JSON = '{"city": "Bremen", "days": [1, 2]}'
# The boxes of both answers, the part of each that is not on its own column, and whether the page scrolls sideways.
BOXES = """() => {
    const box = (place) => document.getElementById(`seat-${place}`).getBoundingClientRect();
    const [one, two] = [box("left"), box("right")];
    const text = document.querySelector("#seat-left .answer__foot").getBoundingClientRect();
    return {
        overlap: one.left < two.right - 1 && two.left < one.right - 1
            && one.top < two.bottom - 1 && two.top < one.bottom - 1,
        foot: text.bottom <= one.bottom + 1,
        sideways: document.documentElement.scrollWidth > innerWidth + 1,
    };
}"""


@pytest.fixture
def project() -> Project:
    return make_project("billing", settings_json={"data": {"kind": "chat"}})


def test_answers_never_overlap_from_a_phone_to_4k(tab: Page, project: Project) -> None:
    sample = sample_of(make_duel(project, king=MARKDOWN, challenger=MARKDOWN))
    tab.goto("/p/billing/queue/")
    at(tab, sample)
    # 640 × 400 is 1280 × 800 at 200 %.
    for width, height in ((360, 640), (640, 400), (768, 1024), (1000, 700), (1100, 800), (1280, 800), (3840, 2160)):
        tab.set_viewport_size({"width": width, "height": height})
        assert tab.evaluate(BOXES) == {"overlap": False, "foot": True, "sideways": False}, (width, height)
        expect(tab.locator('#decide [value="approve"]')).to_be_in_viewport()


def test_an_answer_is_shown_by_its_content_and_raw_by_a_key(tab: Page, project: Project) -> None:
    sample = sample_of(make_duel(project, king=MARKDOWN, challenger=JSON))
    tab.goto("/p/billing/queue/")
    at(tab, sample)
    answers = tab.locator("#plain-answers")
    expect(answers.locator("li")).to_have_count(2)
    expect(answers.locator("pre.code")).to_contain_text('"Bremen"')
    expect(answers.get_by_text("**one**")).to_be_hidden()
    tab.wait_for_load_state("networkidle")
    press(tab, "r")
    expect(answers.get_by_text("**one**")).to_be_visible()
    expect(answers.locator("li").first).to_be_hidden()
    press(tab, "r")
    expect(answers.locator("li").first).to_be_visible()
    assert "thought" not in answers.inner_text() and "block" not in answers.inner_text()


def test_find_counts_its_hits_and_walks_through_answers_and_history(tab: Page, project: Project) -> None:
    sample = sample_of(make_duel(project, king="a lamp and a lamp", challenger="no light"))
    tab.goto("/p/billing/queue/")
    at(tab, sample)
    tab.wait_for_load_state("networkidle")
    find = tab.get_by_label("Find in the history")
    find.fill("lamp")
    count = tab.locator("[data-find-count]")
    expect(count).to_have_text("2 hits")
    find.press("Enter")
    expect(count).to_have_text("1 of 2")
    find.press("Enter")
    find.press("Enter")
    expect(count).to_have_text("1 of 2")
    find.press("Shift+Enter")
    expect(count).to_have_text("2 of 2")
    find.fill("nowhere at all")
    expect(count).to_have_text("no hits")
