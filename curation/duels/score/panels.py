"""Panels: the rules that made a score, and the panel whose scores count in a project."""

import hashlib
from collections.abc import Iterable, Mapping

import orjson
from django.db.models import Count
from ninja import Schema
from pydantic import Field

from curation.duels.score.models import Score, ScorePanel
from curation.projects.models import Project
from curation.projects.settings.document import ProjectSettings
from curation.runs.calls.targets import run_instructions
from curation.runs.models import Run
from curation.web.schemas import Out
from judging.panel.rubric import names_of, read_rubric

DIGEST_CHARACTERS = 12


def make_panel(
    *,
    fingerprints: Mapping[str, str],
    orders: Iterable[str],
    min_judges: int | None,
    weights: Mapping[str, float] | None,
) -> ScorePanel:
    """Return the panel of these rules, which is no row yet; scores by equal rules are comparable. `min_judges` None:
    all; equal weights are the same as none."""
    made = ScorePanel(
        judges=[{"name": name, "fingerprint": mark} for name, mark in fingerprints.items()],
        orders=list(orders),
        min_judges=len(fingerprints) if min_judges is None else min_judges,
        weights=dict(sorted(weights.items())) if weights and len(set(weights.values())) > 1 else None,
    )
    parts = {
        "judges": sorted(fingerprints.items()),
        "orders": sorted(made.orders),
        "min_judges": made.min_judges,
        "weights": made.weights or {},
    }
    digest = hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()
    made.digest = digest[:DIGEST_CHARACTERS]
    return made


def dimensions_of(run: Run) -> tuple[str, ...]:
    """Return the names of the rubric that was in force at the run's launch."""
    return names_of(read_rubric(run_instructions(run, "rubric").text))


def saved_panels(project_id: int, wanted: Iterable[ScorePanel]) -> dict[str, ScorePanel]:
    """Return the row of each panel by its digest; missing ones are created."""
    by_digest = {found.digest: found for found in wanted}
    rows = ScorePanel.objects.filter(project_id=project_id, digest__in=by_digest)
    saved = {row.digest: row for row in rows}
    if missing := [found for digest, found in by_digest.items() if digest not in saved]:
        for found in missing:
            found.project_id = project_id
        ScorePanel.objects.bulk_create(missing, ignore_conflicts=True)
        saved = {row.digest: row for row in rows.all()}
    return saved


class PanelJudgeOut(Schema):
    name: str = Field(examples=["judge-a"])
    fingerprint: str = Field(
        examples=["9c1185a5c5e9fc54"],
        description="Of its model, address, instructions and parameters; empty if not known.",
    )


class PanelOut(Out):
    """The rules of scores. Two scores can be compared if they have the same panel."""

    id: str = Field(examples=["3f9a1c0b77de"])
    judges: list[PanelJudgeOut]
    orders: list[str] = Field(examples=[["king_first", "challenger_first"]])
    min_judges: int = Field(examples=[3])
    weights: dict[str, float] | None = Field(examples=[None], description="Null: all dimensions weigh the same.")
    duels: int = Field(examples=[500], description="How many duels it scored.")
    runs: list[str] = Field(examples=[["12"]])
    counts: bool = Field(description="Whether samples have its scores; `panel.counting` of the settings names it.")


def panels_of(project: Project) -> list[PanelOut]:
    """Return the project's panels, the oldest first."""
    counting = counting_panel(project)
    rows = ScorePanel.objects.filter(project=project).order_by("id")
    runs: dict[int, list[str]] = {}
    scores = Score.objects.filter(panel__project=project, run__isnull=False).order_by("run_id")
    for panel_id, run_id in scores.values_list("panel_id", "run_id").distinct():
        runs.setdefault(panel_id, []).append(str(run_id))
    return [
        PanelOut(
            id=row.digest,
            judges=row.judges,
            orders=row.orders,
            min_judges=row.min_judges,
            weights=row.weights,
            duels=row.duels,
            runs=runs.get(row.pk, []),
            counts=counting is not None and row.pk == counting.pk,
        )
        for row in rows.annotate(duels=Count("scores__duel", distinct=True))
    ]


def counting_panel(project: Project, settings: ProjectSettings | None = None) -> ScorePanel | None:
    """Return the panel whose scores count: the one that the settings name, else the first; None before any score."""
    named = (settings or project.settings).panel.counting
    panels = ScorePanel.objects.filter(project=project)
    return panels.filter(digest=named).first() if named else panels.order_by("id").first()
