"""The page about exports names every reason that a row can be left out for."""

from pathlib import Path

from curation.exports.rows.skip_reasons import Reason

PAGE = Path(__file__).resolve().parents[2] / "docs" / "exports.md"


def test_every_reason_stands_on_the_page() -> None:
    text = PAGE.read_text()
    assert [reason.value for reason in Reason if f"`{reason.value}`" not in text] == []
