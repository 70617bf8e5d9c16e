"""A folder of JSON files, zipped, and a single object over many lines: the rows read, and the errors named."""

import io
import json
from typing import Any

import pytest
from pytest_django import Settings

from curation.duels.models import Prompt
from curation.imports.sources.archive import ZipReader
from curation.imports.sources.rows import BadRow, SourceError, SourcePosition, SourceRow
from tests.factories import make_project
from tests.imports.bringing import bad_rows, bring, chat, zipped


def reader(content: bytes, **limits: int) -> ZipReader:
    return ZipReader(io.BytesIO(content), **{"longest": 1000, "most": 10_000, **limits})


def test_each_json_file_is_a_row_in_any_folder() -> None:
    found = reader(zipped({"a.json": '{"n": 1}', "folder/": "", "folder/B.JSON": '{"n": 2}', "readme.md": "no"}))

    rows = list(found.rows(SourcePosition()))

    assert [row.value for row in rows if isinstance(row, SourceRow)] == [{"n": 1}, {"n": 2}]
    assert found.count() == 2
    assert [row.offset for row in found.rows(rows[0].after)] == [1]
    assert [row.offset for row in found.window(1, 5)] == [1]


def test_a_bad_file_is_named_and_the_others_are_read() -> None:
    content = zipped({"broken.json": "{", "long.json": '"' + "x" * 2000 + '"', "list.json": "[]", "good.json": "{}"})

    rows = list(reader(content).rows(SourcePosition()))

    reasons = [row.reason for row in rows if isinstance(row, BadRow)]
    assert [reason.split(":")[0] for reason in reasons] == ["broken.json", "long.json", "list.json"]
    assert "not JSON" in reasons[0] and "longer than" in reasons[1] and "a list" in reasons[2]
    assert isinstance(rows[3], SourceRow)


def test_a_damaged_member_is_a_bad_row() -> None:
    content = bytearray(zipped({"a.json": json.dumps({"n": "".join(map(chr, range(40, 400)))})}))
    content[60:80] = b"\xff" * 20
    assert isinstance(next(reader(bytes(content)).rows(SourcePosition())), BadRow)


@pytest.mark.parametrize(
    ("content", "limits", "said"),
    [
        (zipped({"readme.md": "x"}), {}, "no .json file"),
        (zipped({"__MACOSX/a.json": "{}"}), {}, "no .json file"),
        (b"PK\x03\x04 and no more", {}, "damaged"),
        (zipped({f"{n}.json": "x" * 900 for n in range(20)}), {}, "Unpacked"),
    ],
)
def test_what_is_no_archive_of_rows_is_refused(content: bytes, limits: dict[str, int], said: str) -> None:
    with pytest.raises(SourceError, match=said):
        reader(content, **limits)


@pytest.mark.django_db(transaction=True)
class TestRun:
    def test_an_archive_is_imported(self) -> None:
        content = zipped({"1.json": json.dumps(chat(1)), "2.json": "{", "3.json": json.dumps(chat(3))})

        run = bring(make_project(), "turns", content, name="turns.zip")

        assert (run.result["format"], run.result["rows"], run.result["bad_rows"]) == ("ZIP of JSON files", 3, 1)
        assert bad_rows(run)["row 2"].startswith("2.json: not JSON")
        assert Prompt.objects.count() == 2

    @pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n\n"])
    def test_one_object_over_many_lines_is_one_row(self, before: bytes) -> None:
        run = bring(make_project(), "turns", before + json.dumps(chat(1), indent=2).encode(), name="turn.json")
        assert (run.result["rows"], Prompt.objects.count()) == (1, 1)

    @pytest.mark.parametrize("first", ["{broken", '{"no": "messages"}'])
    def test_json_lines_stay_json_lines(self, first: str) -> None:
        rows: list[Any] = [first, chat(1), chat(2)]
        run = bring(make_project(), "turns", rows)
        assert (run.result["format"], run.result["rows"], run.result["bad_rows"]) == ("JSON lines", 3, 1)
        assert list(bad_rows(run)) == ["row 1"]

    def test_an_object_longer_than_a_line_may_be_stays_lines(self, settings: Settings) -> None:
        settings.MAX_LINE_BYTES = 300
        run = bring(make_project(), "turns", json.dumps(chat(1), indent=2).encode(), name="turn.json")
        assert run.state == "failed"
