"""Takes the pictures of the docs from a running demo: `python docs/take_screenshots.py http://127.0.0.1:8000`.

Run it on a fresh demo (`make demo RESET=1`) of a machine with a sandbox, from the root of the repository and with
`PYTHONPATH=.`. Needs Chromium and Playwright.
"""

import base64
import re
import struct
import sys
import zlib
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.parts import chromium

IMAGES = Path(__file__).parent / "img"
MOST_BYTES = 150_000
# The most frequent colours make the palette, every other colour takes its nearest: what a page of text needs.
QUANTISE = """async ([png, most]) => {
  const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const pen = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
  pen.drawImage(bitmap, 0, 0);
  const raw = new Uint32Array(pen.getImageData(0, 0, bitmap.width, bitmap.height).data.buffer);
  const counts = new Map();
  for (const colour of raw) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, most).map(([colour]) => colour);
  const parts = (colour) => [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];
  const far = ([r, g, b], [R, G, B]) => (r - R) ** 2 + (g - G) ** 2 + (b - B) ** 2;
  const places = new Map(palette.map((colour, place) => [colour, place]));
  const nearest = (colour) => {
    const gaps = palette.map((one) => far(parts(one), parts(colour)));
    places.set(colour, gaps.indexOf(Math.min(...gaps)));
    return places.get(colour);
  };
  const indexes = Uint8Array.from(raw, (colour) => places.get(colour) ?? nearest(colour));
  let text = '';
  for (let at = 0; at < indexes.length; at += 8192) text += String.fromCharCode(...indexes.subarray(at, at + 8192));
  return {width: bitmap.width, height: bitmap.height, palette: palette.flatMap(parts), pixels: btoa(text)};
}"""


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
        take_trajectory_review(tab)
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
    """Take the pages that the demo's first start filled."""
    duel = _first(tab, "/p/demo/duels/?bucket=final", "duels")
    return {
        "overview": "/p/demo/",
        "models": "/p/demo/models/",
        "run": _run(tab, "duel"),
        "export": _first(tab, "/p/demo/exports/", "exports"),
        "duel": duel,
        "evaluation": _ranked(tab, r"/evaluations/\d+/$"),
        "compare": _ranked(tab, r"/compare/\?"),
        "coverage": "/p/demo/scenarios/coverage/",
        "gate": _first(tab, "/p/demo/scenarios/?status=rejected", "scenarios") + "report/",
        "trajectory": _first(tab, "/p/demo/trajectories/?outcome=solved", "trajectories"),
    }


def _first(tab: Page, path: str, noun: str) -> str:
    tab.goto(path)
    links = tab.locator(f'main a[href^="/p/demo/{noun}/"]').evaluate_all("all => all.map(a => a.getAttribute('href'))")
    return next(str(link) for link in links if re.search(r"/\d+/$", link))


def _ranked(tab: Page, pattern: str) -> str:
    """The first link of the leaderboard that looks like this."""
    tab.goto("/p/demo/evaluations/leaderboard/")
    links = tab.locator("main a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    return next(str(link) for link in links if link and re.search(pattern, str(link)))


def _run(tab: Page, kind: str) -> str:
    tab.goto("/p/demo/runs/")
    row = tab.locator("tbody tr", has_text=re.compile(kind, re.IGNORECASE)).last
    return row.locator("a").first.get_attribute("href") or ""


def take_import(tab: Page) -> None:
    """The demo's own turns, looked at before they are taken in."""
    tab.goto("/p/demo/imports/new/")
    tab.locator("#id_file").set_input_files("curation/dashboard/demo/files/turns.jsonl")
    tab.get_by_role("button", name="Preview").click()
    tab.locator("#preview").wait_for()
    take(tab, "import")


def take_review(tab: Page) -> None:
    tab.goto("/p/demo/queue/")
    tab.locator("#review").wait_for()
    take(tab, "review")


def take_trajectory_review(tab: Page) -> None:
    """A rollout with a sibling beside it; without a sandbox the demo has none."""
    tab.goto("/p/demo/queue/?kind=trajectory")
    if tab.locator("#session").count():
        take(tab, "trajectory-review")


def take_samples(tab: Page) -> None:
    tab.goto("/p/demo/samples/?sort=-score")
    take(tab, "samples")


def take(tab: Page, name: str) -> None:
    tab.wait_for_load_state("networkidle")
    tab.mouse.move(0, 0)
    tab.add_style_tag(content="* { caret-color: transparent !important; animation: none !important }")
    tab.wait_for_timeout(400)
    target = IMAGES / f"{name}.png"
    shot = base64.b64encode(tab.screenshot()).decode()
    blank = tab.context.new_page()
    found = blank.evaluate(QUANTISE, [shot, 255])
    blank.close()
    pixels = base64.b64decode(found["pixels"])
    target.write_bytes(png(found["width"], found["height"], bytes(found["palette"]), pixels))
    size = target.stat().st_size
    print(f"{target.name:20} {size // 1000:4} kB")
    if size > MOST_BYTES:
        raise SystemExit(f"{target.name} is larger than {MOST_BYTES} bytes")


def png(width: int, height: int, palette: bytes, pixels: bytes) -> bytes:
    """A PNG of palette indexes, one byte a pixel, no filter (https://www.w3.org/TR/png-3/)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = b"".join(b"\0" + pixels[line * width : (line + 1) * width] for line in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = (
        chunk(b"IHDR", head),
        chunk(b"PLTE", palette),
        chunk(b"IDAT", zlib.compress(lines, 9)),
        chunk(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


if __name__ == "__main__":
    main(sys.argv[1])
