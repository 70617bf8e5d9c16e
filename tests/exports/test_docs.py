"""The page about exports names every reason for a missing row."""

from pathlib import Path

from curation.exports.rows.skip_reasons import SkipReason

PAGE = Path(__file__).resolve().parents[2] / "docs" / "exports.md"


def test_every_reason_is_on_the_page() -> None:
    text = PAGE.read_text()
    assert [reason.value for reason in SkipReason if f"`{reason.value}`" not in text] == []
