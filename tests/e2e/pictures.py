"""`make pictures`: take the pictures of `docs/img` from a running demo, with Chromium and pngquant.

The demo stays as it is, except that the first sample of the queue gets a lease.
"""

import argparse
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.parts import chromium

FOLDER = Path(__file__).resolve().parents[2] / "docs/img"


@dataclass(frozen=True, slots=True)
class Picture:
    """`path` is a path below the project, or makes one from what REST answers; the button `press` leads further."""

    path: str | Callable[["Rest"], str]
    width: int = 1280
    is_dark: bool = False
    press: str = ""


class Rest:
    """Reads of the demo project with the session of the tab."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def first(self, path: str, **params: str | float | bool) -> dict[str, Any]:
        answer = self._page.request.get(f"/api/v1{path}", params=params)
        found: dict[str, Any] = answer.json()["data"][0]
        return found

    def id(self, noun: str, **params: str | float | bool) -> str:
        return str(self.first(f"/projects/demo/{noun}", **params)["id"])


PICTURES = {
    "overview": Picture(""),
    "overview-dark": Picture("", is_dark=True),
    "samples": Picture("samples/"),
    "samples-narrow": Picture("samples/", width=400),
    "review": Picture("queue/"),
    "guarantee": Picture("samples/guarantee/"),
    "judges": Picture("judges/"),
    "duel": Picture(lambda rest: f"duels/{rest.id('duels')}/"),
    "run": Picture(lambda rest: f"runs/{rest.id('runs', kind='duel')}/"),
    "import": Picture("imports/new/"),
    "models": Picture("models/"),
    "export": Picture(lambda rest: f"exports/{rest.id('exports')}/"),
    "evaluation": Picture(lambda rest: f"evaluations/{rest.id('evaluations')}/"),
    "compare": Picture(lambda rest: f"evaluations/{rest.id('evaluations')}/", press="Compare"),
    "coverage": Picture("scenarios/coverage/"),
    "gate": Picture(lambda rest: f"scenarios/{rest.id('scenarios', status='rejected')}/"),
    "trajectory": Picture(lambda rest: f"trajectories/{rest.id('trajectories')}/"),
    "trajectory-review": Picture(
        lambda rest: f"samples/{rest.id('samples', kind='trajectory', status='pending')}/?view=conversation"
    ),
}


def take(browser: Browser, url: str, name: str, picture: Picture) -> None:
    context = browser.new_context(
        base_url=url,
        viewport={"width": picture.width, "height": 800},
        color_scheme="dark" if picture.is_dark else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto("/login/")
    page.get_by_label("Username").fill("demo")
    page.get_by_label("Password").fill("demo")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda address: "/login" not in address)
    path = picture.path if isinstance(picture.path, str) else picture.path(Rest(page))
    page.goto(f"/p/demo/{path}", wait_until="networkidle")
    if picture.press:
        page.locator(f'button:has-text("{picture.press}")').first.click()
        page.wait_for_load_state("networkidle")
    page.screenshot(path=FOLDER / f"{name}.png")
    context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the pictures of the docs from a running demo.")
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8000")
    parser.add_argument("--only", choices=PICTURES, action="append")
    arguments = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-background-networking"]
        )
        for name in arguments.only or PICTURES:
            take(browser, arguments.url, name, PICTURES[name])
        browser.close()
    files = [FOLDER / f"{name}.png" for name in arguments.only or PICTURES]
    subprocess.run(["pngquant", "--force", "--ext", ".png", *files], check=True)  # a third of the size


if __name__ == "__main__":
    main()
