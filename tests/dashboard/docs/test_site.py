"""The documentation as a static site."""

import re
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from curation.dashboard.docs.pages import documents

HREF = re.compile(r'(?:href|src)="([^"]+)"')


def test_every_link_of_the_site_leads_to_a_file_and_a_heading(tmp_path: Path) -> None:
    call_command("docs", str(tmp_path / "site"))
    pages = {path.parent: path.read_text() for path in tmp_path.glob("site/*/index.html")}
    assert {folder.name for folder in pages} == set(documents())
    links = [(folder, target) for folder, page in pages.items() for target in HREF.findall(page)]
    for folder, target in links:
        if target.startswith(("http:", "https:")):
            continue
        place, _, anchor = target.partition("#")
        there = (folder / place).resolve()
        assert not target.startswith("/") and there.exists() and tmp_path in there.parents, (folder.name, target)
        if anchor:
            assert f'id="{anchor}"' in pages[there], (folder.name, target)
    assert len(links) > 500


def test_a_folder_with_files_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(CommandError, match="is not an empty folder"):
        call_command("docs", str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
