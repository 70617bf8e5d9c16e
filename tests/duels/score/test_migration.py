"""Scores that were stored in their duels, and rows of earlier reports, become scores of their runs."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from curation.duels.models import Duel
from curation.duels.score.models import Score, ScorePanel
from curation.duels.score.panels import counting_panel
from curation.projects.models import Project
from curation.runs.models import Item

pytestmark = pytest.mark.django_db(transaction=True)
BEFORE = ("duels", "0008_leak_reader")
ORDERS = ("king_first", "challenger_first")
METRICS = dict.fromkeys(("correctness", "grounding", "progress", "protocol", "efficiency"), 90.0)


@pytest.fixture
def apps() -> Iterator[Any]:
    """The models as they were. Everything is migrated again at the end."""
    executor = MigrationExecutor(connection)
    leaves = executor.loader.graph.leaf_nodes()
    old = [BEFORE if app == "duels" else (app, name) for app, name in leaves]
    executor.migrate([BEFORE])
    yield MigrationExecutor(connection).loader.project_state(old).apps
    migrate()


def migrate() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def make_duels(apps: Any, project: Any, run: Any, count: int, judges: tuple[str, ...]) -> list[Any]:
    made = []
    for number in range(count):
        place = apps.get_model("duels", "Prompt").objects.count()
        prompt = apps.get_model("duels", "Prompt").objects.create(
            project=project, source="t", row_offset=place, turn_index=2, tokens=1
        )
        answer = apps.get_model("duels", "Answer").objects.create(
            prompt=prompt, side="challenger", model="c", fingerprint="f" * 64, instructions_hash="0" * 64
        )
        scored = {"score": 90.0 - number, "score_key": 90.0 - number, "metrics": METRICS, "bucket": "final", "flags": 2}
        failed = [[judges[0], "king_first"]] if number == 1 else []
        scoring = {"judges": list(judges), "orders": list(ORDERS), "min_judges": 1, "weights": None, "failed": failed}
        duel = apps.get_model("duels", "Duel").objects.create(
            project=project, prompt=prompt, run=run, challenger=answer, opponent="reference", scoring=scoring, **scored
        )
        for judge in judges:
            for order in ORDERS:
                apps.get_model("duels", "Verdict").objects.create(
                    duel=duel,
                    run=run,
                    judge=judge,
                    order=order,
                    fingerprint=judge * 9,
                    instructions_hash="0",
                    parsed=True,
                )
        made.append(duel)
    return made


def test_stored_scores_and_reports_become_scores_of_their_runs(apps: Any) -> None:
    runs, items = apps.get_model("runs", "Run").objects, apps.get_model("runs", "Item").objects
    project = apps.get_model("projects", "Project").objects.create(slug="old", name="Old")
    params = {"judges": ["judge-a", "judge-b"], "min_judges": 1, "swap": True}
    first, second = (runs.create(project=project, kind="judge", params=params) for _ in range(2))
    few = make_duels(apps, project, first, 1, ("judge-b",))
    duels = make_duels(apps, project, second, 3, ("judge-a", "judge-b"))
    rows = [[duel.pk, None, "unparsed", 16, [None] * 5] for duel in duels]
    items.create(run=first, stage="score", key="1", state="done", result={"duels": 3, "rows": rows})
    items.create(
        run=second,
        stage="judge",
        key="2",
        state="skipped",
        target_id=duels[0].pk,
        data={"judge": "judge-a", "order": ORDERS[0]},
    )

    migrate()

    new = Project.objects.get(slug="old")
    scores = Score.objects.filter(duel__project=new)
    assert scores.filter(run=second.pk).count() == 3 and scores.filter(run=first.pk).count() == 4
    for old in (*few, *duels):
        duel = Duel.objects.get(pk=old.pk)
        assert duel.counting is not None
        assert (duel.counting.score, duel.counting.bucket, duel.counting.flags) == (old.score, "final", 2)
        assert (duel.counting.run_id, duel.counting.metrics) == (old.run_id, METRICS)
        assert (duel.score, duel.bucket, duel.run_id) == (old.score, "final", old.run_id)
    assert [len(Score.objects.get(duel=duel.pk, run=second.pk).verdicts) for duel in duels] == [4, 3, 4]
    earlier = Score.objects.get(duel=duels[2].pk, run=first.pk)
    assert (earlier.score, earlier.score_key, earlier.bucket, earlier.flags) == (None, -1.0, "unparsed", 16)
    assert (earlier.metrics, earlier.verdicts) == ({}, [])
    # The panel that scored most duels counts, also where another one has scored before.
    panel = counting_panel(new)
    assert panel is not None and [judge["name"] for judge in panel.judges] == ["judge-a", "judge-b"]
    assert panel == Duel.objects.get(pk=duels[0].pk).counting.panel  # type: ignore[union-attr]
    assert ScorePanel.objects.filter(project=new).count() == 3
    verdict = Duel.objects.get(pk=duels[0].pk).verdicts.get(judge="judge-a", order=ORDERS[0])
    assert Item.objects.get(key="2").data["verdict"] == verdict.pk
