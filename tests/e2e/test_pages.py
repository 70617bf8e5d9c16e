"""Every page of the demo project in real Chromium: light, dark and on a narrow screen, by mouse-less means."""

import importlib.resources
import re
import subprocess
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.e2e.addresses import ELSEWHERE, PAGES, address, full_pages
from tests.e2e.conftest import Watched
from tests.product import Product
from tests.sampled import one_of

pytestmark = [pytest.mark.long, pytest.mark.browser]

# The name of a control for a screen reader, or "" without one.
UNNAMED = """() => [...document.querySelectorAll('input, select, textarea, button, a[href], summary, [role=button]')]
  .filter((el) => el.type !== 'hidden' && el.checkVisibility({visibilityProperty: true}))
  .filter((el) => !(el.labels?.length || el.getAttribute('aria-label')?.trim() || el.title
    || document.getElementById(el.getAttribute('aria-labelledby'))?.textContent.trim()
    || (!el.matches('input, select, textarea') && el.textContent.trim())))
  .map((el) => el.outerHTML.slice(0, 160))"""
# A table that is too wide scrolls in its frame: neither the page nor its main part scrolls sideways.
WIDER = """() => {
  const wide = [document.documentElement, ...document.querySelectorAll('main')]
    .find((el) => el.scrollWidth > el.clientWidth + 1);
  if (!wide) return [];
  const room = wide.getBoundingClientRect().left + wide.clientWidth;
  const out = [...wide.querySelectorAll('*')].filter((el) => el.getBoundingClientRect().right > room + 1);
  return out.slice(0, 5).map((el) => `${el.tagName}.${el.className} ends at ${el.getBoundingClientRect().right}`);
}"""
# Of the element with the focus: a name of its own to tell it by, and whether the eye sees that it has the focus.
FOCUSED = """() => {
  const el = document.activeElement;
  if (!el || el === document.body) return null;
  el.dataset.reached = 'yes';
  const style = getComputedStyle(el);
  const ring = (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none';
  const box = el.getBoundingClientRect();
  const inside = Boolean(el.closest('main'));
  return {what: el.outerHTML.slice(0, 140), seen: ring && box.width > 0 && box.height > 0, inside};
}"""
# Most pages have the background of the document, and those without a sidebar one of their body.
IS_DARK = """() => [document.documentElement, document.body].every((el) => {
  const [red, green, blue, alpha = 1] = getComputedStyle(el).backgroundColor.match(/[\\d.]+/g).map(Number);
  return alpha === 0 || (red + green + blue) / 765 < 0.3;
})"""
NOT_REACHED = """() => [...document.querySelectorAll(
    '.page-head .actions a[href], .page-head .actions button, .form__actions a[href], .form__actions button')]
  .filter((el) => el.checkVisibility({visibilityProperty: true}) && !el.disabled && !el.dataset.reached)
  .map((el) => el.outerHTML.slice(0, 140))"""
TABS, MOST_TABS = 15, 150
# The sidebar is that of each page; the keys pass through it on this one.
FROM_TOP = "project-overview"
FROM_MAIN = """() => {
  const main = document.querySelector('main');
  main.tabIndex = -1;
  main.focus();
}"""
AXE = (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text()
# After the colours have settled, what axe calls serious or critical: the rule, the element and why.
VIOLATIONS = """async (rules) => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  await Promise.allSettled(document.getAnimations().map((animation) => animation.finished));
  const { violations } = await axe.run({ resultTypes: ['violations'], ...(rules && { runOnly: rules }) });
  return violations.filter(({ impact }) => ['serious', 'critical'].includes(impact))
    .flatMap(({ id, nodes }) => nodes.map((one) => `${id}: ${one.html.slice(0, 160)} ${one.failureSummary}`));
}"""


@pytest.fixture(scope="module")
def long_lived(browser: Browser, product: Product, signed_in: StorageState) -> Iterator[Watched]:
    """A tab for all tests of a module, whose browser has the site's files: the first page takes longer than another."""
    context = browser.new_context(base_url=product.url, storage_state=signed_in, reduced_motion="reduce")
    yield Watched(context.new_page())
    context.close()


@pytest.fixture
def tab(long_lived: Watched) -> Iterator[Page]:
    """The module's tab, as the test before left it; fails at the end if anything was said."""
    yield long_lived.page
    said, long_lived.wrong[:] = list(long_lived.wrong), []
    assert said == []


def open_page(tab_page: Page, path: str) -> None:
    answer = tab_page.goto(path, wait_until="load")
    assert answer is not None and answer.status == 200
    if path == "/components/":  # shows busy things on purpose
        return
    # parts that are loaded later: tests of models, charts, the samples' count
    expect(tab_page.locator('[aria-busy="true"], .skeleton')).to_have_count(0)


def test_every_page_is_opened_here_or_by_a_test_of_its_own() -> None:
    assert full_pages() <= {name for name, _ in PAGES.values()} | ELSEWHERE


@pytest.mark.parametrize("page", PAGES)
def test_a_page_in_dark_and_narrow(tab: Page, product: Product, page: str) -> None:
    _appears(tab, "dark", width=400)
    open_page(tab, address(product, page))
    tab.wait_for_function(IS_DARK)
    _fits_and_is_named(tab)
    if page not in {
        "components",
        "document",
        "change-password",
        "second-factor",
        "signed-in",
    }:  # no data that a call could give
        _its_call_is_answered(tab, product)


@pytest.mark.parametrize("page", one_of(3, (FROM_TOP, *(page for page in PAGES if page != FROM_TOP))))
def test_a_page_in_light_and_wide(tab: Page, product: Product, page: str) -> None:
    """Sizes, colours and keys; names and structure are those of the narrow page."""
    _appears(tab, "light", width=1280)
    open_page(tab, address(product, page))
    assert tab.evaluate(WIDER) == []
    assert tab.evaluate(UNNAMED) == []
    tab.evaluate(AXE)
    assert tab.evaluate(VIOLATIONS, ["color-contrast", "link-in-text-block"]) == []
    _tab_reaches_what_it_is_for(tab, from_top=page == FROM_TOP)


def _appears(tab: Page, colours: Literal["dark", "light"], *, width: int) -> None:
    tab.emulate_media(color_scheme=colours)
    tab.set_viewport_size({"width": width, "height": 800})


def _fits_and_is_named(tab: Page) -> None:
    assert tab.evaluate(WIDER) == []
    assert tab.locator("h1:visible").count() == 1
    assert tab.evaluate(UNNAMED) == []
    tab.evaluate(AXE)
    assert tab.evaluate(VIOLATIONS) == []


def _tab_reaches_what_it_is_for(tab: Page, *, from_top: bool) -> None:
    """Each stop of the Tab key is seen, and the page's actions are among them."""
    reached: list[dict[str, Any]] = []
    if not from_top:
        tab.evaluate(FROM_MAIN)
    for _ in range(MOST_TABS):
        tab.keyboard.press("Tab")
        focused = tab.evaluate(FOCUSED)
        if focused is None:
            break
        reached.append(focused)
        if len(reached) > (2 * TABS if from_top else TABS) and not tab.evaluate(NOT_REACHED):
            break
    assert [one["what"] for one in reached if not one["seen"]] == []
    assert any(one["inside"] for one in reached)
    assert tab.evaluate(NOT_REACHED) == []


def _its_call_is_answered(tab: Page, product: Product) -> None:
    """The printed line, run by a shell. A POST that would write needs only to be one that the API knows."""
    line = tab.locator("#curl").text_content() or ""
    found = re.search(r"'(http://[^']+)'$", line)
    assert found is not None and found[1].startswith(f"{product.url}/api/v1/"), line
    if "-X POST" in line and not found[1].endswith("/queue/next"):
        path = found[1].removeprefix(product.url).replace("/projects/demo/", "/projects/{slug}/")
        assert "post" in product.get("/openapi.json")["paths"][path]
        return
    said = subprocess.run(
        ["bash", "-c", line.replace("curl -s", "curl -s -o /dev/null -w '%{http_code}'", 1)],
        env={**product.environment, "TOKEN": product.secret},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert said.stdout == "200", f"{line}: {said.stdout} {said.stderr}"


def test_two_exports_are_compared_on_a_page_that_fits(tab: Page, product: Product) -> None:
    recipe = {"formats": ["sft-messages"], "filter": {"status": "approved"}}
    product.wait(product.api.post("/projects/demo/exports", json={"recipe": recipe}).json())
    after, before = product.get("/projects/demo/exports")["data"][:2]
    _appears(tab, "light", width=400)
    open_page(tab, f"/p/demo/exports/{after['id']}/compare/?with={before['id']}")
    _fits_and_is_named(tab)


def test_two_models_are_compared_on_a_page_that_fits(tab: Page) -> None:
    _appears(tab, "light", width=400)
    open_page(tab, "/p/demo/evaluations/leaderboard/")
    tab.get_by_role("link", name="Compare", exact=True).first.click()
    expect(tab.locator("h1")).to_contain_text("scripted-tuned-cli")
    tab.locator(".chart").scroll_into_view_if_needed()
    expect(tab.locator(".chart[data-state=ready]")).to_have_count(1)
    _fits_and_is_named(tab)
    tab.locator("table[data-rows=row] a").last.click()
    expect(tab.locator("#panel-body")).to_contain_text("Differences as a shell reads them")
