"""Debian's Chromium under Playwright."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.parts import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

# A page of a busy machine may need several seconds for what a quiet one shows at once.
SHOWN_WITHIN_MS = 60_000


class Running:
    """The browser of the modules that follow each other, and whether the next test is in a browser too."""

    def __init__(self) -> None:
        self.goes_on = False
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    def start(self) -> "Browser":
        from playwright.sync_api import expect, sync_playwright  # noqa: PLC0415 - most processes of tests need none

        if self._browser is not None and not self._browser.is_connected():
            self.stop()
        if self._browser is None:
            expect.set_options(timeout=SHOWN_WITHIN_MS)
            # Playwright runs an event loop in this thread, which Django would take for asynchronous code.
            os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
            self._playwright = sync_playwright().start()
            self._browser = self._playwright.chromium.launch(
                executable_path=chromium(), args=["--no-sandbox", "--disable-background-networking", "--disable-gpu"]
            )
        return self._browser

    def stop(self) -> None:
        if self._browser is not None and self._playwright is not None:
            self._browser.close()
            self._playwright.stop()
            self._browser = self._playwright = None
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


RUNNING = Running()


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """A browser for a module's tests, and for those of the next module. `expect` waits for up to 60 s."""
    yield RUNNING.start()
    if not RUNNING.goes_on:
        RUNNING.stop()
