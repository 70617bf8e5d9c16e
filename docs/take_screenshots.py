"""Takes the pictures of the docs from a running demo: `python docs/take_screenshots.py http://127.0.0.1:8000`.

Run it on a fresh demo (`make demo RESET=1`), from the root of the repository and with `PYTHONPATH=.`. Needs Chromium, Playwright and
ImageMagick's `convert`, which makes the files small.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.parts import chromium

IMAGES = Path(__file__).parent / "img"
COLOURS, MOST_BYTES = 128, 150_000


def main(address: str) -> None:
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 800}, bypass_csp=True)
        tab = context.new_page()
        sign_in(tab)
        for name, path in plain_pages(tab).items():
            tab.goto(path)
            take(tab, name)
        take_import(tab)
        take_review(tab)
        take_samples(tab)
        tab.emulate_media(color_scheme="dark")
        tab.goto("/p/demo/")
        take(tab, "overview-dark")
        tab.emulate_media(color_scheme="light")
        tab.set_viewport_size({"width": 400, "height": 800})
        tab.goto("/p/demo/samples/")
        take(tab, "samples-narrow")
        browser.close()


def sign_in(tab: Page) -> None:
    tab.goto("/login/")
    tab.get_by_label("Username").fill("demo")
    tab.get_by_label("Password").fill("demo")
    tab.keyboard.press("Enter")
    tab.wait_for_url(re.compile(r"/p/demo/"))


def plain_pages(tab: Page) -> dict[str, str]:
    """Pages that need no hand: what the demo's first start made."""
    duel = _first(tab, "/p/demo/duels/?bucket=final", "duels")
    return {
        "overview": "/p/demo/",
        "models": "/p/demo/models/",
        "run": _run(tab, "duel"),
        "export": _first(tab, "/p/demo/exports/", "exports"),
        "duel": duel,
    }


def _first(tab: Page, path: str, noun: str) -> str:
    tab.goto(path)
    return tab.locator(f'main a[href^="/p/demo/{noun}/"]').evaluate_all(
        f"links => links.map(a => a.getAttribute('href')).find(href => /{noun}\\/\\d+\\/$/.test(href))"
    )


def _run(tab: Page, kind: str) -> str:
    tab.goto("/p/demo/runs/")
    row = tab.locator("tbody tr", has_text=re.compile(kind, re.IGNORECASE)).last
    return row.locator("a").first.get_attribute("href") or ""


def take_import(tab: Page) -> None:
    """The demo's own turns, looked at before they are taken in."""
    tab.goto("/p/demo/imports/new/")
    tab.locator("#id_file").set_input_files("curation/dashboard/demo/turns.jsonl")
    tab.get_by_role("button", name="Preview").click()
    tab.locator("#preview").wait_for()
    take(tab, "import")


def take_review(tab: Page) -> None:
    tab.goto("/p/demo/queue/")
    tab.locator("#review").wait_for()
    take(tab, "review")


def take_samples(tab: Page) -> None:
    tab.goto("/p/demo/samples/?sort=-score")
    take(tab, "samples")


def take(tab: Page, name: str) -> None:
    tab.wait_for_load_state("networkidle")
    tab.mouse.move(0, 0)
    tab.add_style_tag(content="* { caret-color: transparent !important; animation: none !important }")
    tab.wait_for_timeout(400)
    target = IMAGES / f"{name}.png"
    with tempfile.NamedTemporaryFile(suffix=".png") as raw:
        tab.screenshot(path=raw.name)
        options = ["-dither", "None", "-colors", str(COLOURS), "-strip", "-define", "png:compression-level=9"]
        subprocess.run(["convert", raw.name, *options, f"png8:{target}"], check=True)
    size = target.stat().st_size
    print(f"{target.name:20} {size // 1000:4} kB")
    if size > MOST_BYTES:
        raise SystemExit(f"{target.name} is larger than {MOST_BYTES} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
