"""The keyboard layer and its dialogs, in real Chromium: a key's action, and above all when it does nothing."""

from collections.abc import Iterator
from pathlib import Path

import django_htmx
import pytest
from django.template.loader import render_to_string
from playwright.sync_api import Browser, Page, Route, expect

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
HTMX = Path(django_htmx.__file__).parent / "static" / "django_htmx" / "htmx-2.min.js"
HOST = "http://winnow.test"
MODULES = ("keys", "rows", "times", "copy", "panel", "toast", "busy")
POLICY = "default-src 'self'; img-src 'self' data:"
BODY = """
<button data-key="a" id="approve" hx-get="/slow" hx-target="#out">Approve <kbd>a</kbd></button>
<button data-key="x" id="reject" data-dialog="#reasons">Reject <kbd>x</kbd></button>
<button data-key="backspace" id="erase" hx-get="/erase" hx-swap="none">Erase</button>
<button data-key="mod+enter" id="save" hx-get="/save" hx-target="#out">Save</button>
<div data-background><span hx-get="/slow" hx-trigger="load" hx-swap="none"></span></div>
<textarea id="text"></textarea>
<dialog id="reasons"><button data-key="1" id="first" hx-get="/reason" hx-swap="none">1</button></dialog>
<a data-goto="q" href="/queue">Queue</a>
<button data-goto="g" id="top" hx-get="/first" hx-swap="none">First <kbd>g g</kbd></button>
<button data-key="shift+g" id="bottom" hx-get="/last" hx-swap="none">Last <kbd>G</kbd></button>
<a data-key="/" id="search" href="/search">Search</a>
<div data-rows="sample">
  <p data-row><a id="row-1" href="/1" hx-get="/part" hx-target="#panel-body" data-panel-title="Sample 1">1</a></p>
  <p data-row><a id="row-2" href="/2" hx-get="/part" hx-target="#panel-body" data-panel-title="Sample 2">2</a></p>
</div>
<button id="stale" hx-get="/stale" hx-swap="none">Stale</button>
<div id="out"></div>
<aside id="panel" tabindex="-1" hidden>
  <h2 id="panel-title"></h2><a data-panel-full href="#">Open</a><div id="panel-body"></div>
</aside>
<dialog id="dialog"><h2 id="dialog-title"></h2><div id="dialog-body"></div></dialog>
"""


def _document() -> str:
    scripts = "".join(f'<script type="module" src="/static/js/{name}.js"></script>' for name in MODULES)
    shared = render_to_string("_keys.html") + render_to_string("_toasts.html")
    return f'<!doctype html><script src="/htmx.js" defer></script><body>{BODY}{shared}{scripts}</body>'


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    yield page
    page.close()


@pytest.fixture
def asked(tab: Page) -> list[str]:
    """Opens the page and gives the addresses that htmx asks for from then on; `/slow` is never answered."""
    seen: list[str] = []

    def answer(route: Route) -> None:
        path = route.request.url.removeprefix(HOST)
        if path.startswith("/static/"):
            route.fulfill(path=ROOT / path.removeprefix("/"))
        elif path == "/htmx.js":
            route.fulfill(path=HTMX)
        elif "hx-request" in route.request.headers:
            seen.append(path)
            _fragment(route, path)
        else:
            route.fulfill(body=_document(), content_type="text/html", headers={"Content-Security-Policy": POLICY})

    tab.route("**/*", answer)
    with tab.expect_request("**/slow"):
        tab.goto(HOST + "/")
    expect(tab.locator("#approve")).to_have_attribute("aria-keyshortcuts", "a")
    _press(tab)
    seen.clear()
    return seen


def _fragment(route: Route, path: str) -> None:
    if path == "/slow":
        return  # stays under way
    if path == "/stale":
        route.fulfill(status=412, json={"detail": "Version 4 is there now."}, content_type="application/problem+json")
    else:
        route.fulfill(body="<p>part</p>", content_type="text/html")


def _press(tab: Page, *keys: str) -> None:
    """Press the keys and wait until a later request of the page is answered, so that theirs are seen."""
    for key in keys:
        tab.keyboard.press(key)
    tab.evaluate("() => new Promise((done) => setTimeout(() => fetch('/later').then(() => done()), 50))")


def test_a_key_presses_its_button_once_and_the_button_says_that_it_works(tab: Page, asked: list[str]) -> None:
    _press(tab, "a")
    assert asked == ["/slow"]
    expect(tab.locator("#approve")).to_be_disabled()
    expect(tab.locator("#approve")).to_have_attribute("aria-busy", "true")


def test_no_key_acts_while_a_request_is_under_way(tab: Page, asked: list[str]) -> None:
    _press(tab, "a", "x", "a", "Control+Enter")
    assert asked == ["/slow"]
    expect(tab.locator("#reasons")).not_to_be_visible()


def test_polling_does_not_block_the_keys(tab: Page, asked: list[str]) -> None:
    _press(tab, "x")  # the background request of the page is never answered
    expect(tab.locator("#reasons")).to_be_visible()


def test_no_key_acts_while_typing_but_saving_does(tab: Page, asked: list[str]) -> None:
    tab.focus("#text")
    _press(tab, "a", "x", "?", "g", "q")
    assert asked == []
    assert tab.input_value("#text") == "ax?gq"
    _press(tab, "Control+Enter")
    assert asked == ["/save"]


def test_a_capital_is_a_key_of_its_own(tab: Page, asked: list[str]) -> None:
    _press(tab, "Shift+G")
    assert asked == ["/last"]
    _press(tab, "g", "g")
    assert asked == ["/last", "/first"]
    _press(tab, "Shift+A", "Shift+X")
    assert asked == ["/last", "/first"]
    expect(tab.locator("#reasons")).not_to_be_visible()
    expect(tab.locator("#bottom")).to_have_attribute("aria-keyshortcuts", "Shift+G")
    _press(tab, "?")
    expect(tab.locator("#keys")).to_contain_text("LastG")


def test_no_key_of_the_page_acts_in_a_dialog(tab: Page, asked: list[str]) -> None:
    _press(tab, "x")
    _press(tab, "a", "Control+Enter", "j", "?")
    assert asked == []
    _press(tab, "1")
    assert asked == ["/reason"]
    _press(tab, "Escape")
    expect(tab.locator("#reasons")).not_to_be_visible()


def test_a_held_key_acts_once(tab: Page, asked: list[str]) -> None:
    for _ in range(4):
        tab.keyboard.down("j")
    tab.keyboard.up("j")
    expect(tab.locator("#row-1")).to_be_focused()


def test_backspace_and_modified_letters_do_nothing(tab: Page, asked: list[str]) -> None:
    _press(tab, "Backspace", "Control+a", "Alt+a", "Shift+A")
    assert asked == []


def test_g_then_a_letter_goes_there(tab: Page, asked: list[str]) -> None:
    tab.keyboard.press("g")
    tab.keyboard.press("q")
    expect(tab).to_have_url(HOST + "/queue")


def test_the_keys_dialog_names_what_the_page_declares(tab: Page, asked: list[str]) -> None:
    _press(tab, "?")
    text = tab.locator("#keys").inner_text()
    for line in ("Approve", "Ctrl+Enter", "Next / previous sample", "Queue"):
        assert line in text
    assert "Erase" not in text


def test_a_row_opens_beside_the_list_and_gives_the_focus_back(tab: Page, asked: list[str]) -> None:
    _press(tab, "j", "j", "Enter")
    expect(tab.locator("#panel-title")).to_have_text("Sample 2")
    expect(tab.locator("#panel-body")).to_have_text("part")
    assert tab.locator("[data-panel-full]").get_attribute("href") == "/2"
    _press(tab, "Escape")
    expect(tab.locator("#panel")).not_to_be_visible()
    expect(tab.locator("#row-2")).to_be_focused()


def test_a_stale_version_is_told_in_the_server_s_words(tab: Page, asked: list[str]) -> None:
    tab.click("#stale")
    toast = tab.locator("#toasts .toast")
    expect(toast).to_contain_text("Changed meanwhile")
    expect(toast).to_contain_text("Version 4 is there now.")
    expect(toast.get_by_role("button", name="Reload")).to_be_visible()
