"""An empty database gets all tables at once; they are those that the migrations make one by one."""

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps

from curation.duels.models import Score
from curation.exports.models import Export
from tests.deploy.schema import schema
from tests.factories import make_duel, make_project, make_run
from tests.runs.elsewhere import own_database, run_elsewhere

CORRECTIONS = (
    ("duels", "0004_what_was_not_measured"),
    ("trajectories", "0010_what_was_not_measured"),
    ("exports", "0003_what_was_not_looked_for"),
)


@pytest.mark.slow
@pytest.mark.django_db
def test_both_ways_make_the_same_tables(tmp_path: Path) -> None:
    """The database of the tests is one that got its tables at once."""
    with own_database() as database:
        one_by_one = Counter(run_elsewhere("tests.deploy.schema", folder=tmp_path, database=database))
    at_once = Counter(schema())
    assert one_by_one - at_once == {}
    assert at_once - one_by_one == {}


@pytest.mark.django_db
def test_a_stored_zero_of_an_earlier_version_is_null_where_nothing_was_measured() -> None:
    project = make_project()
    one_order, both = (make_run(project, result=result(n=2)) for _ in range(2))
    nothing = make_run(project, result=result(n=0) | {"leak_check": ""})
    for run, orders in ((one_order, ["king_first"]), (both, ["king_first", "challenger_first"])):
        score = Score.objects.get(duel=make_duel(project, run=run))
        panel = score.panel
        panel.pk, panel.orders, panel.digest = None, orders, str(run.pk)
        panel.save()
        Score.objects.filter(pk=score.pk).update(panel=panel)
    rollout = make_run(project, "rollout", result={"balance": {"kept": 0, "exit": 0.0, "panic": 0.0}})
    found = {"levels": {"same_text": 1, "paraphrase": 0}}
    unread, read = (
        Export.objects.create(
            project=project, run=make_run(project, "export"), recipe={}, counts={"contamination": one}
        )
        for one in (found, found | {"embedded": 4})
    )
    for app, name in CORRECTIONS:
        import_module(f"curation.{app}.migrations.{name}").correct(apps, None)

    for row in (one_order, both, nothing, rollout, unread, read):
        row.refresh_from_db()
    rates = [run.result["judges"][0]["flip_rate"] for run in (one_order, both, nothing)]
    assert rates == [None, 0.0, None]
    assert nothing.result["leak_check"] == "no answers"
    assert rollout.result["balance"] == {"kept": 0, **dict.fromkeys(("exit", "panic", "empty_queue", "blocked"))}
    levels = [export.counts["contamination"]["levels"] for export in (unread, read)]
    assert levels == [{"same_text": 1}, {"same_text": 1, "paraphrase": 0}]


def result(n: int) -> dict[str, Any]:
    return {"judges": [{"name": "judge-a", "n": n, "flip_rate": 0.0, "flips": {"correctness": 0.0}}]}
