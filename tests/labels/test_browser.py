"""The questions of a project on the review page in real Chromium, by keys."""

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from curation.labels.models import Label, Question
from curation.projects.models import Project
from curation.review.models import Decision
from tests.review import conftest
from tests.review.pages import test_browser as review
from tests.review.rows import judged

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
project, page = conftest.project, review.page
SHOTS = os.environ.get("REVIEW_SCREENSHOTS", "")


@pytest.fixture
def asked(project: Project) -> Iterator[None]:
    Question.objects.create(
        project=project, name="error", title="What is wrong?", kind="label", choices=["none", "no test"], required=True
    )
    Question.objects.create(project=project, name="severity", title="How bad?", kind="rating", choices=[1, 2, 3])
    Question.objects.create(project=project, name="where", title="Where?", kind="span", choices=["guess"])
    Question.objects.create(project=project, name="why", title="Why?", kind="text")
    yield


def shoot(page: Page, name: str) -> None:
    if not SHOTS:
        return
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 400)):
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.wait_for_timeout(400)  # colours fade
        page.screenshot(path=f"{SHOTS}/{name}-{scheme}-{width}.png")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.emulate_media(color_scheme="light")


def test_a_sample_is_labelled_and_approved_by_keys_alone(page: Page, asked: None, project: Project) -> None:
    sample, following = (
        judged(project, challenger="ls, then ls again", king="pwd, then ls", priority=n) for n in range(2)
    )
    page.goto("/p/billing/queue/")
    review.at(page, sample)

    page.keyboard.press("1")
    page.keyboard.press("a")
    expect(page.locator("#labels-error")).to_have_text("Answer before you approve: What is wrong?")
    assert not Decision.objects.exists()
    page.keyboard.press("Escape")
    # The last "ls" of the left answer, as a person selects it.
    page.evaluate(
        """() => {
          const left = document.querySelector("#seat-left .answer__body");
          const walker = document.createTreeWalker(left, NodeFilter.SHOW_TEXT);
          let last = null;
          while (walker.nextNode()) if (walker.currentNode.data.includes("ls")) last = walker.currentNode;
          const at = last.data.lastIndexOf("ls");
          document.getSelection().setBaseAndExtent(last, at, last, at + 2);
        }"""
    )
    page.keyboard.press("l")
    expect(page.locator('#ask-labels [name="quote"]')).to_have_value("ls")
    for key in ("2", "5", "6", "7"):  # no test, 3, guess, and the field of the text
        page.keyboard.press(key)
    page.keyboard.type("It guesses, a lot.")
    shoot(page, "labels-dialog")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#labels dl")).to_contain_text("It guesses, a lot.")
    expect(page.locator("#ask-labels")).not_to_be_visible()
    shoot(page, "labels-panel")
    page.keyboard.press("a")
    review.at(page, following)

    values = dict(Label.objects.values_list("question__name", "value"))
    assert (values["error"], values["severity"], values["why"]) == ("no test", 3, "It guesses, a lot.")
    assert values["where"]
    (span,) = values["where"]
    text = {"challenger": "ls, then ls again", "king": "pwd, then ls"}[span["field"]]
    assert span["start"] == text.rindex("ls") and Decision.objects.get().action == "approve"
    if SHOTS:
        page.keyboard.press("f")
        page.locator("#flag-reason").fill("the prompt looks cut")
        page.keyboard.press("Control+Enter")
        expect(page.locator(".review__last")).to_contain_text("flagged")
    for name, path in (("questions", "p/billing/settings/labels/"), ("flags", "p/billing/samples/flags/")):
        page.goto(f"/{path}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        shoot(page, name)
