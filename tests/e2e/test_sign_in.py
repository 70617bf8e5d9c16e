"""A person signs in with the provider, in real Chromium, under the site's content policy."""

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from tests.e2e.conftest import Watched
from tests.factories import make_project
from tests.provider import Provider
from tests.provider import provider as provider

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_group_removed_at_the_provider_is_a_project_that_is_gone(
    browser: Browser, live_server: LiveServer, provider: Provider, settings: Settings
) -> None:
    make_project("acme")
    settings.OIDC_ROLES = {"acme": {"viewer": {"team"}}}
    provider.person["groups"] = ["team"]
    context = browser.new_context(base_url=live_server.url)
    watched = Watched(context.new_page())
    page = watched.page
    page.goto("/p/acme/samples/")
    page.get_by_role("link", name="Sign in with Acme").click()
    page.wait_for_url("**/p/acme/samples/")
    page.get_by_role("button", name="Sign out").click()
    provider.person["groups"] = []
    page.get_by_role("link", name="Sign in with Acme").click()
    page.wait_for_url(lambda url: urlsplit(url).path == "/")
    expect(page.get_by_text("acme")).to_have_count(0)
    context.close()
    assert watched.wrong == []
