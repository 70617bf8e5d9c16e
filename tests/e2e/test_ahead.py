"""Samples that are fetched ahead, in Chromium: shown at once, decided in order, given back when they are not used."""

import itertools
import re
from collections.abc import Iterator
from threading import Event

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from curation.projects.models import Project
from curation.review.models import Decision, Draft, Lease
from curation.samples.models import Sample
from tests.e2e.conftest import tab_of
from tests.e2e.test_review import at, duels, press
from tests.factories import make_member, make_project
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
DECIDES = re.compile(r"/decide/$")
FETCHES = re.compile(r"/queue/ahead/\?")


@pytest.fixture
def project() -> Project:
    return make_project("billing", settings_json={"review": {"one_key": True}})


@pytest.fixture
def tab(browser: Browser, live_server: LiveServer, project: Project) -> Iterator[Page]:
    with tab_of(browser, live_server, make_member(project), expected=("500", "503", "ERR_FAILED")) as page:
        yield page


def fetched(count: int) -> None:
    until(lambda: Lease.objects.filter(ahead=True).count() == count)


def opened(tab: Page, project: Project) -> list[Sample]:
    """Thirty samples: the page shows the first, and two more are fetched."""
    samples = duels(project, 30)
    tab.goto("/p/billing/queue/")
    at(tab, samples[0])
    fetched(2)
    return samples


def test_one_key_decides_and_the_next_sample_does_not_wait_for_the_server(tab: Page, project: Project) -> None:
    samples = opened(tab, project)
    tab.wait_for_load_state("networkidle")
    held, released = list[Route](), Event()

    def hold(route: Route) -> None:
        if released.is_set():
            route.continue_()
        else:
            held.append(route)

    tab.route(DECIDES, hold)
    with tab.expect_request(DECIDES):
        press(tab, "1")
    at(tab, samples[1])
    tab.wait_for_timeout(100)  # times are sent in tenths of a second
    press(tab, "2")
    at(tab, samples[2])
    assert not Decision.objects.exists(), "it waited for the server"
    released.set()
    for route in held:
        route.continue_()
    expect(tab.locator(".review__last")).to_contain_text(f"Sample {samples[1].pk}: approved right")
    decided = Decision.objects.order_by("id").values_list("sample_id", "preference")
    assert list(decided) == [(samples[0].pk, "left"), (samples[1].pk, "right")]
    assert all(row.seconds and row.seconds > 0 for row in Decision.objects.all())
    expect(tab.locator("#review-progress")).to_contain_text("28 left")
    press(tab, "z")
    at(tab, samples[1])
    assert Sample.objects.get(pk=samples[1].pk).status == "pending"


def test_a_decision_that_fails_brings_its_sample_back(tab: Page, project: Project) -> None:
    samples = opened(tab, project)
    tab.wait_for_load_state("networkidle")
    tab.route(DECIDES, lambda route: route.fulfill(status=503, body="away"))
    press(tab, "1")
    expect(tab.get_by_text(f"Sample {samples[0].pk} is not decided")).to_be_visible()
    at(tab, samples[0])
    expect(tab.locator('#seat-left [data-pick="left"]')).to_have_attribute("aria-pressed", "true")
    assert not Decision.objects.exists()


def test_a_long_look_renews_what_was_fetched(tab: Page, project: Project) -> None:
    tab.clock.install()
    samples = opened(tab, project)
    before = set(Lease.objects.filter(ahead=True).values_list("pk", flat=True))
    tab.clock.fast_forward(90_000)  # a lease is extended each 100 s
    until(lambda: not Lease.objects.filter(pk__in=before).exists())
    fetched(2)
    tab.wait_for_load_state("networkidle")
    with tab.expect_request(DECIDES):
        press(tab, "1")
    at(tab, samples[1])


def test_a_draft_that_is_saved_late_is_shown_with_a_fetched_sample(tab: Page, project: Project) -> None:
    samples = opened(tab, project)
    tab.wait_for_load_state("networkidle")
    asked, answered = itertools.count(1), list[str]()
    tab.on("response", lambda response: answered.append(response.url.rpartition("/queue/ahead/")[2]))
    # The second sample is asked for when the first one is there.
    with tab.expect_request(lambda request: FETCHES.search(request.url) is not None and next(asked) == 2):
        tab.evaluate(
            """(sample) => {
                const key = `winnow-draft:${document.body.dataset.user}:billing:${sample}`;
                localStorage.setItem(key, JSON.stringify({ comment: "Typed before", preference: "", left: "" }));
                window.dispatchEvent(new Event("online"));
            }""",
            samples[1].pk,
        )
    assert Draft.objects.get().comment == "Typed before"
    assert [url for url in answered if url in ("release/", "?")][0] == "release/", "samples after it would be fetched"
    press(tab, "1")
    at(tab, samples[1])
    expect(tab.locator("#comment")).to_have_value("Typed before")


def test_a_decision_of_a_sample_with_a_fetched_next_one_ends_its_draft(tab: Page, project: Project) -> None:
    samples = opened(tab, project)
    tab.wait_for_load_state("networkidle")
    tab.route("**/draft/", lambda route: route.abort())
    press(tab, "c")
    tab.keyboard.type("Reads too much")
    expect(tab.locator("[data-draft-state]").first).to_contain_text("Kept in this browser")
    press(tab, "Escape", "1")
    tab.unroute_all()
    at(tab, samples[1])
    until(lambda: Decision.objects.filter(comment="Reads too much").exists())
    tab.wait_for_function("() => Object.keys(localStorage).every((key) => !key.startsWith('winnow-draft:'))")
    press(tab, "c")
    tab.keyboard.type("Typed")
    press(tab, "Escape", "z")  # before the draft is saved by itself
    at(tab, samples[0])
    expect(tab.locator("#comment")).to_have_value("Reads too much")
    until(lambda: Draft.objects.filter(sample=samples[1], comment="Typed").exists())
    expect(tab.locator(".toast")).to_have_count(0)


def test_unused_samples_are_given_back(tab: Page, project: Project) -> None:
    opened(tab, project)
    tab.goto("/p/billing/samples/")
    fetched(0)


def test_the_last_samples_of_a_queue_are_left_to_others(tab: Page, project: Project) -> None:
    samples = duels(project, 5)
    tab.goto("/p/billing/queue/")
    at(tab, samples[0])
    tab.wait_for_load_state("networkidle")
    assert list(Lease.objects.values_list("sample_id", flat=True)) == [samples[0].pk]
