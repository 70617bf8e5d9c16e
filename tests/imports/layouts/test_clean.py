import pytest

from curation.imports.layouts.clean import DEEPEST, clean
from curation.imports.sources.rows import RowRefused


def nested(levels: int) -> object:
    value: object = "text"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("row", [{"a": nested(DEEPEST - 1)}, {"a": [[] for _ in range(2 * DEEPEST)]}])
def test_deep_and_wide_rows_are_taken_as_they_are(row: object) -> None:
    assert clean(row, "") == (row, [])


def test_deeper_row_is_refused_by_its_column() -> None:
    with pytest.raises(RowRefused, match=r"^a(\[\])+ has more than 200 levels of nesting"):
        clean({"a": nested(DEEPEST)}, "")


def test_nul_in_deep_row_is_replaced() -> None:
    cleaned, replaced = clean({"a\0": [[] for _ in range(2 * DEEPEST)], "b": "x\0"}, "")

    assert list(cleaned) == ["a\N{REPLACEMENT CHARACTER}", "b"]
    assert "b" in replaced
