"""An empty database gets all tables at once; they are those that the migrations make one by one."""

from collections import Counter
from pathlib import Path

import pytest

from tests.deploy.schema import schema
from tests.runs.elsewhere import own_database, run_elsewhere


@pytest.mark.slow
@pytest.mark.django_db
def test_both_ways_make_the_same_tables(tmp_path: Path) -> None:
    """The database of the tests is one that got its tables at once."""
    with own_database() as database:
        one_by_one = Counter(run_elsewhere("tests.deploy.schema", folder=tmp_path, database=database))
    at_once = Counter(schema())
    assert one_by_one - at_once == {}
    assert at_once - one_by_one == {}
