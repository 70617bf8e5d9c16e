"""Real Chromium in front of the running product. A message on a page's console fails the test that opened it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Response, StorageState
from pytest_django.live_server_helper import LiveServer

from curation.projects.models import Project
from tests.browser import SHOWN_WITHIN_MS
from tests.factories import make_member, make_project
from tests.product import Product


@dataclass
class Watched:
    """A tab and everything in it that went wrong: script errors, console errors, broken policies, failed answers."""

    page: Page
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self.wrong.append(f"{self.page.url}: {error}"))
        self.page.on("console", self._heard)
        self.page.on("response", self._answered)

    def _heard(self, line: ConsoleMessage) -> None:
        if line.type == "error" or "Content Security Policy" in line.text:
            self.wrong.append(f"{self.page.url}: {line.text}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400:
            self.wrong.append(f"{self.page.url}: {response.request.method} {response.url} {response.status}")


OpenTab = Callable[..., Watched]


class Served(Protocol):
    """A server on the test's own database."""

    @property
    def url(self) -> str: ...


@contextmanager
def tab_of(
    browser: Browser, server: Served, user: User, *, expected: Sequence[str] = (), **look: Any
) -> Iterator[Page]:
    """A tab on the test's own database, signed in as this user. A message on the console without an `expected` word
    fails the test. `look` goes to the browser's context."""
    client = Client()
    client.force_login(user)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    context = browser.new_context(base_url=server.url, **({"viewport": {"width": 1280, "height": 800}} | look))
    context.set_default_timeout(SHOWN_WITHIN_MS)
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": server.url}])
    watched = Watched(context.new_page())
    yield watched.page
    context.close()
    assert [line for line in watched.wrong if not any(word in line for word in expected)] == []


def sign_in(page: Page, product: Product) -> None:
    """By the form and the keyboard, as a person does it."""
    page.goto(f"{product.url}/login/")
    page.get_by_label("Username").focus()
    page.keyboard.type("demo")
    page.keyboard.press("Tab")
    page.keyboard.type("demo")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/login" not in url)


@pytest.fixture(scope="module")
def signed_in(browser: Browser, product: Product) -> StorageState:
    """The cookies of a signed-in person."""
    context = browser.new_context()
    sign_in(context.new_page(), product)
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def open_tab(browser: Browser, product: Product, signed_in: StorageState) -> Iterator[OpenTab]:
    """`open_tab(width=400, dark=True)`: a watched tab, signed in; fails at the end if anything was said."""
    contexts: list[BrowserContext] = []
    tabs: list[Watched] = []

    def open_one(*, width: int = 1280, height: int = 800, dark: bool = False) -> Watched:
        context = browser.new_context(
            base_url=product.url,
            storage_state=signed_in,
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        context.set_default_timeout(SHOWN_WITHIN_MS)
        contexts.append(context)
        tabs.append(Watched(context.new_page()))
        return tabs[-1]

    yield open_one
    for context in contexts:
        context.close()
    assert [line for tab in tabs for line in tab.wrong] == []


@pytest.fixture
def project() -> Project:
    return make_project("billing", name="Billing")


@pytest.fixture
def tab(browser: Browser, live_server: LiveServer, project: Project) -> Iterator[Page]:
    with tab_of(browser, live_server, make_member(project)) as page:
        yield page
