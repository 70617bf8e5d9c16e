"""Move the scores that are there into the table of scores: the newest of each duel, and those of earlier runs' reports.

The panel that scored most duels of a project counts. A duel that another panel scored keeps that score until the
counting panel or the thresholds are changed, or the duel is scored again; the preview of a change shows it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from curation.duels.score.panels import PanelRules, rules

BATCH = 500
MARK = 16
DIMENSIONS = ("correctness", "grounding", "progress", "protocol", "efficiency")
BOTH_ORDERS = ["king_first", "challenger_first"]


def move_scores(apps: StateApps, editor: BaseDatabaseSchemaEditor) -> None:
    for project in apps.get_model("projects", "Project").objects.order_by("id"):
        scored = apps.get_model("duels", "Duel").objects.filter(project=project).exclude(bucket="")
        duels = scored.exclude(run__kind="import")  # no panel has judged those
        counted: Counter[PanelRules] = Counter()
        for batch in _batches(duels):
            counted.update(found for found, _ in _panels_of(apps, batch).values())
        # The first row is the panel that counts.
        panels = {found: _panel_row(apps, project, found) for found, _ in counted.most_common()}
        for batch in _batches(duels):
            _move(apps, batch, panels)
        _move_reports(apps, project)
        _name_reused_verdicts(apps, project)


def _batches(rows: Any) -> Iterator[list[Any]]:
    last = 0
    while batch := list(rows.filter(pk__gt=last).order_by("pk")[:BATCH]):
        yield batch
        last = batch[-1].pk


def _panels_of(apps: StateApps, duels: list[Any]) -> dict[int, tuple[PanelRules, list[int]]]:
    """Return each duel's panel and the ids of the verdicts that made its score."""
    verdicts = defaultdict(list)
    for verdict in apps.get_model("duels", "Verdict").objects.filter(duel__in=duels).order_by("id"):
        verdicts[verdict.duel_id].append(verdict)
    found = {}
    for duel in duels:
        asked = {(j, o) for j in duel.scoring.get("judges", ()) for o in duel.scoring.get("orders", ())}
        asked -= {(judge, order) for judge, order in duel.scoring.get("failed", ())}
        used = [row for row in verdicts[duel.pk] if (row.judge, row.order) in asked]
        marks = {
            name: "+".join(sorted({row.fingerprint[:MARK] for row in used if row.judge == name}))
            for name in duel.scoring.get("judges", ())
        }
        found[duel.pk] = (_rules(duel.scoring, duel.scoring.get("orders") or (), marks), [row.pk for row in used])
    return found


def _rules(given: dict[str, Any], orders: Any, marks: dict[str, str]) -> PanelRules:
    return rules(fingerprints=marks, orders=orders, min_judges=given.get("min_judges"), weights=given.get("weights"))


def _panel_row(apps: StateApps, project: Any, found: PanelRules) -> Any:
    values = {
        "judges": [{"name": name, "fingerprint": mark} for name, mark in found.judges],
        "orders": list(found.orders),
        "min_judges": found.min_judges,
        "weights": dict(found.weights) or None,
    }
    panels = apps.get_model("duels", "ScorePanel").objects
    return panels.get_or_create(project=project, digest=found.digest, defaults=values)[0]


def _move(apps: StateApps, duels: list[Any], panels: dict[PanelRules, Any]) -> None:
    score_model = apps.get_model("duels", "Score")
    of = _panels_of(apps, duels)
    scores = [
        score_model(
            duel=duel,
            run_id=duel.run_id,
            panel=panels[of[duel.pk][0]],
            score=duel.score,
            score_key=duel.score_key,
            metrics=duel.metrics,
            spread=duel.spread,
            bucket=duel.bucket,
            flags=duel.flags,
            verdicts=of[duel.pk][1],
            failed=duel.scoring.get("failed", []),
        )
        for duel in duels
    ]
    for duel, score in zip(duels, score_model.objects.bulk_create(scores), strict=True):
        duel.counting = score
    apps.get_model("duels", "Duel").objects.bulk_update(duels, ["counting"], batch_size=BATCH)


def _move_reports(apps: StateApps, project: Any) -> None:
    """Move the rows of earlier runs' reports. Their verdicts were replaced, so only the figures are left."""
    duel_model, score_model = apps.get_model("duels", "Duel"), apps.get_model("duels", "Score")
    for run in apps.get_model("runs", "Run").objects.filter(project=project, items__stage="score").distinct():
        orders = BOTH_ORDERS[:1] if run.params.get("swap") is False else BOTH_ORDERS
        panel = _panel_row(apps, project, _rules(run.params, orders, dict.fromkeys(run.params.get("judges") or (), "")))
        for item in run.items.filter(stage="score").order_by("id").iterator(chunk_size=20):
            rows = {row[0]: row for row in item.result.get("rows", ())}
            known = duel_model.objects.filter(pk__in=rows).exclude(scores__run=run).values_list("pk", flat=True)
            score_model.objects.bulk_create([_reported(score_model, run, panel, *rows[pk]) for pk in known])
        if not panel.scores.exists():
            panel.delete()


def _reported(
    model: Any, run: Any, panel: Any, pk: int, score: float | None, bucket: str, flags: int, metrics: list[float]
) -> Any:
    return model(
        duel_id=pk,
        run=run,
        panel=panel,
        score=score,
        score_key=-1.0 if score is None else score,
        metrics={name: value for name, value in zip(DIMENSIONS, metrics, strict=True) if value is not None},
        bucket=bucket,
        flags=flags,
    )


def _name_reused_verdicts(apps: StateApps, project: Any) -> None:
    """Let each item that was skipped as judged already name the verdict that it reuses."""
    item_model, verdict_model = apps.get_model("runs", "Item"), apps.get_model("duels", "Verdict")
    for batch in _batches(item_model.objects.filter(run__project=project, stage="judge", state="skipped")):
        rows = verdict_model.objects.filter(duel__in={item.target_id for item in batch}).order_by("id")
        known = {(row.duel_id, row.judge, row.order): row.pk for row in rows}
        for item in batch:
            pk = known.get((item.target_id, item.data.get("judge"), item.data.get("order")))
            if pk is not None:
                item.data = {**item.data, "verdict": pk}
        item_model.objects.bulk_update(batch, ["data"], batch_size=BATCH)


class Migration(migrations.Migration):
    dependencies = [("duels", "0009_scores_by_run")]

    operations = [migrations.RunPython(move_scores, migrations.RunPython.noop)]
