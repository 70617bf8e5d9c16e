"""Thresholds and the counting panel: the samples that a change of them moves, and the move itself."""

from collections.abc import Collection

from django.urls import reverse

from curation.duels.score.counting import copy_scores, moves
from curation.duels.score.models import ScorePanel
from curation.projects.models import Project
from curation.projects.settings.dependents import Dependent, DependentLink, ExpectedMove, MissingOut
from curation.projects.settings.document import ProjectSettings

PATHS = frozenset({"thresholds.final", "thresholds.refined", "panel.counting"})


class CountingScores(Dependent):
    """Samples follow the counting panel and the thresholds."""

    def missing(self, project: Project, settings: ProjectSettings) -> list[MissingOut]:
        named = settings.panel.counting
        if not named or ScorePanel.objects.filter(project=project, digest=named).exists():
            return []
        return [MissingOut("panel.counting", f"panel {named}")]

    def moves(self, project: Project, settings: ProjectSettings, changed: Collection[str]) -> list[ExpectedMove]:
        if not PATHS.intersection(changed):
            return []
        return [
            ExpectedMove(
                move.before,
                move.after,
                move.samples,
                move.decided,
                tuple(
                    DependentLink(f"sample {sample}", reverse("sample-page", args=[project.slug, sample]))
                    for _, sample in move.examples
                ),
            )
            for move in moves(project, settings)
        ]

    def apply(self, project: Project, changed: Collection[str]) -> None:
        if PATHS.intersection(changed):
            copy_scores(project)
