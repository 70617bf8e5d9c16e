"""An empty database gets all tables at once; they are those that the migrations make one by one."""

from collections import Counter
from pathlib import Path

import pytest

from tests.runs.elsewhere import own_database, run_elsewhere


@pytest.mark.long
def test_both_ways_make_the_same_tables(tmp_path: Path) -> None:
    made = {}
    for way in ("one-by-one", "at-once"):
        folder = tmp_path / way
        folder.mkdir(mode=0o700)
        with own_database() as database:
            made[way] = Counter(run_elsewhere("tests.deploy.schema", way, folder=folder, database=database))
    assert made["one-by-one"] - made["at-once"] == {}
    assert made["at-once"] - made["one-by-one"] == {}
