"""Rows of the import kind `scenarios`: one bundle each."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

from django.urls import reverse

from curation.imports.row_kinds import ImportKind, Options, RowPreview, Target
from curation.imports.sources.rows import Row, RowRefused
from curation.projects.models import Project
from curation.projects.settings.data import TRAJECTORIES
from curation.runs.models import Run
from curation.scenarios.bundles.document import Bundle, canonical, parse_bundle
from curation.scenarios.bundles.upsert import upsert_bundles
from curation.scenarios.taxonomy.axes import Taxonomy, shipped_taxonomy, taxonomy_of
from curation.web.problems import Invalid

# Names in a run's result; the others are only counted.
MAX_LISTED = 50


class ScenarioKind(ImportKind[Options, Bundle]):
    """A bundle that differs from the scenario of its name replaces its bundle and makes it a draft again."""

    name: ClassVar[str] = "scenarios"
    title: ClassVar[str] = "Scenarios"
    unit: ClassVar[str] = "scenarios"
    columns: ClassVar[str] = "a bundle per row: name, announcement, reference_solution, checker, expected_terminal, …"
    words: ClassVar[Mapping[str, str]] = {
        "scenarios": "New scenarios",
        "updated": "Changed scenarios, drafts again",
        "unchanged": "Known scenarios, unchanged",
    }
    options = Options

    def __init__(self, taxonomy: Taxonomy | None = None) -> None:
        self._taxonomy = taxonomy or shipped_taxonomy()

    def of(self, project: Project) -> Self:
        return type(self)(taxonomy_of(project.settings))

    def links(self, run: Run) -> Sequence[tuple[str, str]]:
        slug = run.project.slug
        shown = f"{reverse('scenario-list', args=[slug])}?run={run.pk}"
        return [("Launch the gate", f"{reverse('run-new', args=[slug])}?kind=gate"), ("Show the scenarios", shown)]

    def data_kind(self, entries: Sequence[Bundle]) -> str:
        return TRAJECTORIES

    def parse(self, row: Row, options: Options) -> Bundle:
        try:
            return parse_bundle(row.value, taxonomy=self._taxonomy)
        except Invalid as refused:
            raise RowRefused(refused.detail) from None

    def write(self, target: Target, entries: list[Bundle]) -> dict[str, int]:
        run = target.run
        found = upsert_bundles(project=run.project, bundles=entries, user=run.created_by, run=run)
        if found.updated:
            again = [*target.memory.get("drafts_again", []), *found.updated]
            target.memory["drafts_again"] = target.notes["drafts_again"] = again[:MAX_LISTED]
        return {
            "scenarios": len(found.created),
            "updated": len(found.updated),
            "unchanged": len(found.unchanged),
        }

    def preview(self, row: Row, options: Options) -> RowPreview:
        bundle = self.parse(row, options)
        lines: Sequence[tuple[str, str]] = [
            (bundle.name, f"{bundle.title}\n\n{bundle.announcement.text}\n\n{bundle.reference_solution}")
        ]
        return RowPreview("bundles", 1, lines)

    def weight(self, entry: Bundle) -> int:
        return len(canonical(entry.document()))
