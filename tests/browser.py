"""Debian's Chromium under Playwright."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.parts import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A page of a busy machine may need several seconds for what a quiet one shows at once.
SHOWN_WITHIN_MS = 30_000


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """A browser for a module's tests. `expect` waits for up to 30 s."""
    from playwright.sync_api import expect, sync_playwright  # noqa: PLC0415 - most processes of tests need none

    expect.set_options(timeout=SHOWN_WITHIN_MS)
    # Playwright runs an event loop in this thread, which Django would take for asynchronous code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-background-networking", "--disable-gpu"]
        )
        yield started
        started.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
