"""Two worker processes share a run and an endpoint."""

from pathlib import Path

import pytest

from tests.runs.elsewhere import own_database, run_elsewhere


@pytest.mark.long
@pytest.mark.timeout(240)
def test_two_workers_do_every_item_once_and_keep_the_endpoints_concurrency(tmp_path: Path) -> None:
    with own_database() as database:
        found = run_elsewhere("tests.runs.two_workers", "300", "6", folder=tmp_path, database=database)
    assert found["codes"] == [0, 0]
    assert (found["state"], found["items"], found["done"], found["answers"]) == ("succeeded", {"done": 600}, 600, 300)
    assert (found["most_claims"], found["workers"]) == (1, 2)
    # As the server saw it: each question once, and never more than six at a time.
    assert (found["asked"], found["most_times_one_was_answered"], found["from_the_record"]) == (300, 1, 0)
    assert found["most_at_once"] <= 6
    assert (found["calls"], found["calls_counted"]) == (300, 300)
