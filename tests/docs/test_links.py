"""The targets of the documents' links exist."""

import re
from pathlib import Path

import pytest

from tests.e2e.pictures import PICTURES

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_relative_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    for target in LINK.findall(document.read_text()):
        if "://" in target:
            continue
        place, _, heading = target.partition("#")
        found = (document.parent / place).resolve() if place else document
        assert found.exists(), target
        assert found.is_relative_to(ROOT), target
        if heading:
            assert heading in {_anchor(line) for line in found.read_text().splitlines() if line.startswith("#")}, target


def test_every_picture_can_be_taken_again_is_shown_and_small() -> None:
    shown = {target for document in DOCUMENTS for target in LINK.findall(document.read_text())}
    pictures = list((ROOT / "docs/img").glob("*.png"))
    assert {picture.stem for picture in pictures} == set(PICTURES)
    for picture in pictures:
        assert any(target.endswith(f"img/{picture.name}") for target in shown), picture.name
        assert picture.stat().st_size < 150_000, picture.name


def _anchor(line: str) -> str:
    words = re.sub(r"[^\w\s-]", "", line.lstrip("#").strip().lower())
    return words.replace(" ", "-")
