"""The bytes that a browser without a cache loads, and its cache afterwards."""

from collections import Counter

import pytest
from playwright.sync_api import Browser, StorageState, expect

from tests.product import Product
from tests.sampled import one_of

pytestmark = [pytest.mark.long, pytest.mark.browser]

MOST_BYTES = 1_600_000
PLOTLY = "plotly"


@pytest.mark.parametrize("page", one_of(2, ["overview", "compare"]))
def test_a_page_with_charts_is_light_when_nothing_is_cached(
    browser: Browser, signed_in: StorageState, product: Product, page: str
) -> None:
    """The overview was 4.9 MB, of which Plotly was 4.8. Plotly comes with the first chart that is in view."""
    path = "/p/demo/" if page == "overview" else _comparison(browser, signed_in, product)
    context = browser.new_context(
        base_url=product.url, storage_state=signed_in, viewport={"width": 1280, "height": 160}
    )
    tab = context.new_page()
    wire = context.new_cdp_session(tab)
    names: dict[str, str] = {}
    loaded: Counter[str] = Counter()
    wire.on("Network.requestWillBeSent", lambda event: names.update({event["requestId"]: event["request"]["url"]}))
    wire.on(
        "Network.loadingFinished",
        lambda event: loaded.update({names.get(event["requestId"], ""): int(event["encodedDataLength"])}),
    )
    wire.send("Network.enable")
    tab.goto(path, wait_until="networkidle")
    assert not [name for name in loaded if PLOTLY in name]
    for chart in tab.locator(".chart").all():
        chart.scroll_into_view_if_needed()
    expect(tab.locator(".chart[data-state=ready]")).to_have_count(tab.locator(".chart").count())
    tab.wait_for_load_state("networkidle")
    assert len([name for name in loaded if PLOTLY in name]) == 1
    assert 0 < sum(loaded.values()) <= MOST_BYTES, loaded.most_common(50)
    for name in loaded:
        if "/static/" in name:
            kept = context.request.head(name).headers
            assert "immutable" in kept["cache-control"], name
    context.close()


def _comparison(browser: Browser, signed_in: StorageState, product: Product) -> str:
    """The path of a comparison, read in a browser of its own: the test's has loaded nothing yet."""
    with browser.new_context(base_url=product.url, storage_state=signed_in) as context:
        tab = context.new_page()
        tab.goto("/p/demo/evaluations/leaderboard/")
        return tab.get_by_role("link", name="Compare", exact=True).first.get_attribute("href") or ""
