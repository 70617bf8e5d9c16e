"""Four journeys through a running demo, in Chromium: how many keys and clicks, and how many seconds.

    python -m tests.e2e.journeys [http://127.0.0.1:8000] [--latency 400] [--without-ahead]

The demo has new rows afterwards. Letters that are typed into a field count as one input. Reading takes no time: each
journey waits only for what it needs to see next. `--without-ahead` keeps the browser from fetching samples ahead.
"""

import argparse
import re
import secrets
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from tests.parts import chromium

PAIRS = "prompt,chosen,rejected\n" + "".join(
    f'"How long does dish {n} bake?","{n + 20} minutes at 180 °C.","Until it is done."\n' for n in range(30)
)


@dataclass(slots=True)
class Hands:
    page: Page
    keys: int = 0
    clicks: int = 0
    inputs: int = 0

    def press(self, *keys: str) -> None:
        self.page.wait_for_load_state("load")
        for key in keys:
            expect(self.page.locator("html[data-keys-wait]")).to_have_count(0)
            self.page.keyboard.press(key)
            self.keys += 1

    def click(self, target: Locator) -> None:
        target.click()
        self.clicks += 1

    def fill(self, target: Locator, text: str) -> None:
        target.fill(text)
        self.inputs += 1

    def choose(self, target: Locator, value: str) -> None:
        target.select_option(value)
        self.clicks += 1


def export(hands: Hands) -> None:
    """All pending trajectories are approved at once and exported, and the approval is taken back."""
    page = hands.page
    page.goto("/p/demo/samples/")
    hands.choose(page.get_by_label("Kind", exact=True), "trajectory")
    page.wait_for_url("**kind=trajectory**")
    hands.choose(page.get_by_label("Status", exact=True), "pending")
    page.wait_for_url("**status=pending**")
    hands.click(page.get_by_text("All that match").first)
    hands.click(page.get_by_role("button", name="Approve all…"))
    expect(page.locator("#bulk-reason")).to_be_visible()
    hands.press("Control+Enter")
    expect(page.get_by_text("No sample matches")).to_be_visible()  # the list is loaded again
    hands.press("g", "e")
    expect(page.locator("h1")).to_have_text("Exports")
    hands.press("n")
    expect(page.locator("h1")).to_have_text("New export")
    hands.press("Control+Enter")
    page.wait_for_url(re.compile(r"/(runs|exports)/\d+/$"))
    expect(page.get_by_text("Succeeded", exact=True).first).to_be_visible(timeout=60_000)
    hands.press("g", "s")
    hands.click(page.get_by_role("link", name="Bulk decisions"))
    hands.click(page.get_by_role("button", name="Undo").first)
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)


def review(hands: Hands) -> None:
    """Twenty decisions of the queue, with the last one taken back and made again."""
    page = hands.page
    page.goto("/p/demo/queue/")
    for number in range(21):
        root = page.locator("#review[data-sample]")
        expect(root).to_be_visible()
        sample = root.get_attribute("data-sample") or ""
        if number == 20:
            hands.press("z")
        else:
            hands.press(*(("1", "a") if root.get_attribute("data-needs-pick") is not None else ("a",)))
        expect(page.locator(f'#review[data-sample="{sample}"]')).to_have_count(0)
    hands.press("1", "a")
    page.wait_for_load_state("networkidle")


def start(hands: Hands) -> None:
    """From nothing to the first decision about one's own preferences in a CSV file."""
    page = hands.page
    page.goto("/projects/new/")
    hands.fill(page.get_by_label("Name"), f"Kitchen {secrets.token_hex(3)}")
    hands.press("Control+Enter")
    page.wait_for_url(re.compile(r"/p/kitchen[^/]*/$"))
    slug = page.url.split("/")[-2]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pairs.csv")
        file.write_text(PAIRS)
        hands.click(page.get_by_role("link", name="Show the steps").first)
        hands.click(page.locator(".content a[href*='/imports/new/']").first)
        page.locator("input[type=file]").set_input_files(file)
        hands.inputs += 1
        hands.press("Control+Enter")
        page.wait_for_url("**/runs/*/")
    expect(page.get_by_text("Succeeded", exact=True).first).to_be_visible(timeout=60_000)
    hands.press("g", "q")
    expect(page.locator("#review[data-sample]")).to_be_visible()
    hands.press("1", "a")
    expect(page.locator("#last-done")).to_contain_text("approved")
    assert page.url.split("/")[4] == slug


def inspect(hands: Hands) -> None:
    """A failed run of an agent is found, and the step at which a sibling did otherwise."""
    page = hands.page
    page.goto("/p/demo/")
    hands.press("g", "j")
    expect(page.locator("h1")).to_have_text("Trajectories")
    hands.click(page.locator("nav.tabs").get_by_role("link", name="Failed"))
    page.wait_for_url("**outcome=failed**")
    hands.press("j", "Enter")
    page.wait_for_url("**/trajectories/*/")
    expect(page.locator("#siblings .divergence")).to_be_visible()
    hands.press("n")
    expect(page.locator("#siblings .divergence")).to_be_in_viewport()


JOURNEYS: dict[str, Callable[[Hands], None]] = {
    "approve trajectories, export them, take it back": export,
    "20 decisions and one undo": review,
    "own preferences to the first decision": start,
    "a failed run and where it parts": inspect,
}


def walk(
    browser: Browser, url: str, journey: Callable[[Hands], None], *, latency: int, is_ahead: bool
) -> tuple[Hands, float]:
    context = browser.new_context(base_url=url, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto("/login/")
    page.get_by_label("Username").fill("demo")
    page.get_by_label("Password").fill("demo")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda address: "/login" not in address)
    line = {"offline": False, "latency": latency, "downloadThroughput": -1, "uploadThroughput": -1}
    context.new_cdp_session(page).send("Network.emulateNetworkConditions", line)
    if not is_ahead:
        page.route("**/queue/ahead/**", lambda route: route.fulfill(status=204))
    hands, began = Hands(page), time.perf_counter()
    journey(hands)
    seconds = time.perf_counter() - began
    context.close()
    return hands, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="Four journeys through a running demo.")
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8000")
    parser.add_argument("--latency", type=int, default=0, help="milliseconds that each request waits")
    parser.add_argument("--without-ahead", action="store_true")
    given = parser.parse_args()
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-background-networking"]
        )
        for name, journey in JOURNEYS.items():
            hands, seconds = walk(browser, given.url, journey, latency=given.latency, is_ahead=not given.without_ahead)
            print(
                f"{name}: {hands.keys} keys, {hands.clicks} clicks, {hands.inputs} inputs, {seconds:.1f} s "
                f"at {given.latency} ms of latency"
            )
        browser.close()


if __name__ == "__main__":
    main()
