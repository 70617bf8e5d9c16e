"""The REST calls of held-out splits."""

from typing import Any

import pytest

from curation.evaluations.models import Split
from tests.evaluations.evaluating import make_rows, make_split, uploaded
from tests.exports.pages.test_api import Script

pytestmark = pytest.mark.django_db(transaction=True)


def test_rows_of_a_split_and_the_list_of_splits() -> None:
    script = Script()
    split = make_split(script.project, make_rows(3, tiers=("easy", "hard")))
    rows = script("get", f"/splits/{split.pk}/rows?tier=easy").json()["data"]
    assert [row["number"] for row in rows] == [1, 3] and rows[0]["messages"][0]["role"] == "user"
    listed = script("get", f"{script.here}/splits").json()["data"]
    assert [(entry["name"], entry["rows"], entry["evaluations"]) for entry in listed] == [("val.jsonl", 3, 0)]


def test_bad_rows_are_listed_and_good_rows_imported() -> None:
    script = Script()
    good = make_rows(1)[0]
    rows: list[dict[str, Any]] = [
        good,
        {"messages": "x"},
        {"messages": [good["messages"][0]]},
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": " "}]},
        {"messages": [{"role": "robot", "content": "a"}, {"role": "assistant", "content": "b"}]},
    ]
    split = uploaded(script, rows)
    run = Split.objects.get(pk=split).run
    assert run is not None
    reasons = [item["reason"] for item in script("get", f"/runs/{run.pk}/items?stage=bad_row").json()["data"]]
    assert len(reasons) == 4 and any("has no text" in reason for reason in reasons)
    assert script("get", f"/splits/{split}").json()["rows"] == 1
