"""A person at an imported run, in real Chromium and by keys: reading it, marking its steps, and approving a part."""

import pytest
from playwright.sync_api import Page, expect

from curation.projects.models import Project
from curation.trajectories.models import Trajectory, TrajectoryText
from tests.factories import called, make_imported

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def row(project: Project) -> Trajectory:
    """A sibling did something else in the fourth of its 200 steps."""
    long = [called(f"echo {number}", f"{number}\n") for number in range(3, 199)]
    row = make_imported(project, called("ls", "a.csv"), called("cat big.log", "line of a log\n" * 2000), *long)
    make_imported(project, called("ls", "a.csv"), called("uname", "Linux"))
    return row


def press(tab: Page, *keys: str) -> None:
    for key in keys:
        tab.keyboard.press(key)


def at(tab: Page, number: int) -> None:
    """The step is chosen, has the focus, and can be marked."""
    expect(tab.locator(f"#step-{number} [data-row-focus]")).to_be_focused()
    expect(tab.locator("[data-step-shown]")).to_have_text(f"Step {number}")


def marks(row: Trajectory) -> object:
    return TrajectoryText.objects.get(trajectory=row).marks


def test_a_run_is_read_marked_and_approved_up_to_a_step(tab: Page, row: Trajectory) -> None:
    tab.goto(f"/p/billing/samples/{row.sample_id}/")
    expect(tab.locator("#review")).to_have_attribute("data-sample", str(row.sample_id))
    expect(tab.get_by_role("complementary", name="Outline")).to_contain_text("200 steps")
    expect(tab.locator('[aria-busy="true"]')).to_have_count(0)
    tab.wait_for_load_state("networkidle")
    press(tab, "m")
    expect(tab.get_by_text("Choose a step first")).to_be_visible()
    press(tab, "j", "j", "j")
    at(tab, 3)
    press(tab, "m")
    expect(tab.locator("#marks-3")).to_have_text("not learned")
    press(tab, "j", "j")
    at(tab, 5)
    press(tab, "Shift+M")
    expect(tab.locator("#marks-4")).to_have_text("not learned")
    press(tab, "2")
    expect(tab.locator("#marks-5")).to_contain_text("wrong")
    expect(tab.get_by_role("button", name="Wrong")).to_have_attribute("aria-pressed", "true")
    assert marks(row) == {"2": {"learn": False}, "3": {"learn": False}, "4": {"learn": False, "label": "wrong"}}
    press(tab, "z")
    expect(tab.locator("#marks-5")).not_to_contain_text("wrong")
    expect(tab.locator('[aria-busy="true"]')).to_have_count(0)
    press(tab, "n")
    expect(tab.locator(".divergence")).to_have_text("First difference: step 4, another action.")
    tab.get_by_role("link", name="This one alone").click()
    expect(tab.locator(".divergence")).to_have_count(0)
    tab.get_by_role("spinbutton", name="Jump to step").fill("100")
    press(tab, "Enter")
    at(tab, 100)
    press(tab, "u")
    expect(tab.get_by_text("approved up to this step")).to_have_count(1)
    end = {"100": {"end": True}}
    assert marks(row) == {"2": {"learn": False}, "3": {"learn": False}, "4": {"learn": False}} | end
