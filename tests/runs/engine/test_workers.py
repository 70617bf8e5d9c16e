"""Two worker processes share a run and an endpoint."""

from pathlib import Path

import pytest

from tests.runs.elsewhere import own_database, run_elsewhere


# On SQLite the chaos of `test_chaos.py` shows it; that a row is claimed once, `test_claim.py`.
@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_two_workers_do_every_item_once_and_keep_the_endpoints_concurrency(tmp_path: Path) -> None:
    with own_database() as database:
        found = run_elsewhere("tests.runs.two_workers", "60", "6", folder=tmp_path, database=database)
    assert found["codes"] == [0, 0]
    assert (found["state"], found["items"], found["done"], found["answers"]) == ("succeeded", {"done": 120}, 120, 60)
    assert (found["most_claims"], found["workers"]) == (1, 2)
    # As the server saw it: each question once, and never more than six at a time.
    assert (found["asked"], found["most_times_one_was_answered"], found["from_the_record"]) == (60, 1, 0)
    assert found["most_at_once"] <= 6
    assert (found["calls"], found["calls_counted"]) == (60, 60)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_item_that_kills_its_workers_is_failed_and_no_other(tmp_path: Path) -> None:
    with own_database() as database:
        found = run_elsewhere("tests.runs.dying_workers", "poison", "0", folder=tmp_path, database=database)
    words = "Given up: its worker died 5 times while working on it alone."
    assert found["failed"] == {"ask 7": words, "ask 44": words, "count 5": words}, found["events"]
    assert (found["state"], found["done"], found["counted"]) == ("succeeded", 117, [120, 117, 3])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_kills_fail_no_healthy_item(tmp_path: Path) -> None:
    with own_database() as database:
        found = run_elsewhere("tests.runs.dying_workers", "kills", "100", folder=tmp_path, database=database)
    assert found["deaths"] >= 100
    assert (found["failed"], found["state"], found["counted"]) == ({}, "succeeded", [120, 120, 0]), found["events"]
