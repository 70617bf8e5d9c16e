"""The documents and notebooks of `docs/` under `/docs/`, also without signing in."""

import re
from pathlib import Path
from urllib.parse import urljoin

import pytest
from django.test import Client
from django.urls import reverse

from curation.dashboard.docs.pages import documents, find
from curation.dashboard.docs.reference import GENERATED

ROOT = Path(__file__).resolve().parents[3]
HREF = re.compile(r'(?:href|src)="([^"]+)"')


def test_every_document_and_every_notebook_has_a_page() -> None:
    notebooks = {f"notebook-{path.stem}" for path in (ROOT / "docs/notebooks").glob("*.ipynb")}
    assert set(documents()) == {path.stem for path in (ROOT / "docs").glob("*.md")} | notebooks | set(GENERATED)


@pytest.mark.django_db
def test_a_notebook_is_shown_and_downloaded(client: Client) -> None:
    page = client.get("/docs/notebook-triage/").content.decode()
    assert "Pending samples are looked at" in page and "from winnow_client import Stale, Winnow" in page
    assert "/docs/notebook-triage/" in client.get("/docs/", {"q": "datasets.Dataset pending"}).content.decode()

    file = client.get("/docs/notebooks/triage.ipynb")

    assert "attachment" in file["Content-Disposition"]
    assert b"".join(file).startswith(b"{")


@pytest.mark.django_db
@pytest.mark.parametrize("name", documents())
def test_every_link_of_a_page_leads_to_a_page_and_a_heading(client: Client, name: str) -> None:
    here = reverse("document", args=[name])
    page = client.get(here).content.decode()
    assert page.count("<h1") == 1 and documents()[name].title in page
    text = page[page.index('<article class="docs__text">') :]
    for target in HREF.findall(text[: text.index("</article>")]):
        place, _, anchor = urljoin(here, target).partition("#")
        if not place.startswith("/docs/"):
            continue
        answer = client.get(place)
        assert answer.status_code == 200, target
        if anchor:
            assert f'id="{anchor}"' in answer.content.decode(), target
        answer.close()


@pytest.mark.django_db
def test_a_search_leads_to_the_section(client: Client) -> None:
    found = client.get("/docs/", {"q": "wilson interval"}).content.decode()
    assert "/docs/statistics/#rates" in found and "Wilson" in found
    assert "No section has all of these words" in client.get("/docs/", {"q": "zyzzyva"}).content.decode()
    assert client.get("/docs/", {"q": "  "})["Location"] == reverse("document", args=["quickstart"])
    # The search covers the text on the page.
    assert "<b>x" not in client.get("/docs/", {"q": "<b>x"}).content.decode()


def test_a_word_in_a_heading_comes_first() -> None:
    assert "leak" in find("leaks")[0].section.title.lower()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    [
        "/docs/nosuch/",
        "/docs/img/nosuch.png",
        "/docs/img/..%2fapi.md",
        "/docs/img/api.md",
        "/docs/notebooks/nosuch.ipynb",
    ],
)
def test_what_is_not_there_is_a_404(client: Client, path: str) -> None:
    assert client.get(path).status_code == 404
