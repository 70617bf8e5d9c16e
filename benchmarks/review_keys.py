"""From a key press to the next sample painted, in Chromium, and how long transcripts of 5,000 turns and 5 MB take.

Asked for: median of at most 50 ms and p95 of at most 100 ms at 5,000 samples, also with 400 ms of latency on the line.
A reviewer decides by `1 a` after reading for `--pause` seconds; the time runs from the press of `a` until the second
frame after the swap. Of the transcripts it prints the time from the request to the paint of the opened sample, and from
a jump by the outline to the paint of the turn.

    python -m benchmarks.review_keys [--samples 5000] [--presses 100] [--pause 1] [--chromium /usr/bin/chromium]
"""

import argparse
import os
import sys
import tempfile
import time
from statistics import median, quantiles

from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.review import free_port, rows, server

MEDIAN_MS, P95_MS = 50, 100
LATENCIES = (0, 400)
# Keeps in `window.painted` the milliseconds from each `a` to the second frame after the sample was replaced.
WATCH = """() => {
    let pressed = 0;
    window.painted = [];
    addEventListener("keydown", (event) => { if (event.key === "a") pressed = performance.now(); }, true);
    document.addEventListener("htmx:load", (event) => {
        if (event.detail.elt.id !== "review" || !pressed) return;
        const from = pressed;
        pressed = 0;
        requestAnimationFrame(() => requestAnimationFrame(() => window.painted.push(performance.now() - from)));
    });
}"""
# Milliseconds until the element is on the page and two frames have passed.
JUMP = """async (turn) => {
    const from = performance.now();
    location.hash = `#turn-${turn}`;
    while (!document.querySelector(`[data-transcript] [data-turn~="${turn}"].is-linked`)) {
        await new Promise((next) => setTimeout(next, 1));
    }
    await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
    return performance.now() - from;
}"""
# Milliseconds from the request until two frames after the sample is on the page, which claims it after it has loaded.
SHOWN = """
new MutationObserver((_, watching) => {
    if (!document.querySelector("#review[data-sample]")) return;
    watching.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => { window.shown = performance.now(); }));
}).observe(document, { childList: true, subtree: true });
"""


def press(page: Page, url: str, presses: int, *, pause: float, latency: int) -> list[float]:
    page.goto(f"{url}/p/bench/queue/")
    expect(page.locator("#review[data-sample]")).to_be_visible()
    line = {"offline": False, "latency": latency, "downloadThroughput": -1, "uploadThroughput": -1}
    page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", line)
    page.evaluate(WATCH)
    for number in range(presses):
        page.wait_for_function("n => window.painted.length >= n", arg=number)
        expect(page.locator("html[data-keys-wait]")).to_have_count(0)
        page.wait_for_timeout(1000 * pause)
        page.keyboard.press("1")
        page.keyboard.press("a")
    page.wait_for_function("n => window.painted.length >= n", arg=presses)
    found: list[float] = page.evaluate("window.painted")
    return found


def read(page: Page, url: str, sample: int, jumps: list[int]) -> tuple[float, list[float]]:
    page.goto(f"{url}/p/bench/samples/{sample}/")
    expect(page.locator("#review[data-sample]")).to_be_visible()
    painted: float = page.wait_for_function("() => window.shown").json_value()
    return painted, [page.evaluate(JUMP, turn) for turn in jumps]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--samples", type=int, default=5_000)
    options.add_argument("--presses", type=int, default=100)
    options.add_argument("--pause", type=float, default=1.0)
    options.add_argument("--chromium", default="/usr/bin/chromium")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="winnow-bench-") as data, sync_playwright() as playwright:
        port = free_port()
        environment = {**os.environ, "WINNOW_DATA": data, "PORT": str(port), "LOG_LEVEL": "ERROR"}
        rows(environment, "fill", str(given.samples), "1")
        long = rows(environment, "long")
        with server(environment):
            browser = playwright.chromium.launch(executable_path=given.chromium, args=["--no-sandbox"])
            url = f"http://127.0.0.1:{port}"
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            context.add_cookies([{"name": "sessionid", "value": long["session"], "url": url}])
            context.add_init_script(SHOWN)
            page = context.new_page()
            began = time.process_time()
            slow = False
            for latency in LATENCIES:
                times = press(page, url, given.presses, pause=given.pause, latency=latency)
                p95 = quantiles(times, n=20)[-1]
                slow |= median(times) > MEDIAN_MS or p95 > P95_MS
                print(
                    f"{given.samples:,} samples, {len(times)} decisions, latency {latency} ms: key press to next "
                    f"sample painted, median {median(times):.0f} ms, p95 {p95:.0f} ms (asked {MEDIAN_MS} and "
                    f"{P95_MS}), load {os.getloadavg()[0]:.1f}, {time.process_time() - began:.1f} s of this process"
                )
            page = context.new_page()  # without latency
            for name, sample, jumps in (
                ("history of 5,000 turns", long["turns"], [2500, 4000, 100]),
                ("history with an output of 5 MB", long["output"], [2, 0, 2]),
                ("trajectory of 5,000 turns", long["trajectory"], [2500, 4000, 100]),
                ("trajectory with an output of 5 MB", long["output_of_trajectory"], [2, 0, 2]),
            ):
                painted, jumped = read(page, url, sample, jumps)
                print(f"{name}: painted after {painted:.0f} ms, jumps {', '.join(f'{ms:.0f}' for ms in jumped)} ms")
            browser.close()
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
