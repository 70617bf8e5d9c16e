"""Save many bundles by their names: create new ones, edit those that differ, leave the others unchanged."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from curation.projects.models import AuditEntry, Project
from curation.runs.models import Run
from curation.scenarios.bundles.harbor import Document
from curation.scenarios.bundles.save import axis_rows, columns_of, lock_scenarios, replace_bundle
from curation.scenarios.copies import link_copies
from curation.scenarios.models import Scenario, ScenarioAxis, ScenarioText

BATCH = 500


@dataclass(frozen=True, slots=True)
class UpsertedBundles:
    """Names in the order of the bundles. The `updated` ones are drafts again."""

    created: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: tuple[str, ...]


def upsert_bundles(
    *, project: Project, bundles: Sequence[Document], user: User | None, run: Run | None = None
) -> UpsertedBundles:
    """Save all bundles or none. Of two with the same name the later one is saved."""
    created: list[str] = []
    updated: list[str] = []
    unchanged: list[str] = []
    with transaction.atomic():
        lock_scenarios(project)
        changed: list[int] = []
        for batch in _batches(bundles):
            existing = {row.name: row for row in Scenario.objects.of(project).filter(name__in=[b.name for b in batch])}
            changed += _create(project, [bundle for bundle in batch if bundle.name not in existing], run)
            for bundle in batch:
                row = existing.get(bundle.name)
                if row is None:
                    created.append(bundle.name)
                elif replace_bundle(project, row, bundle, user=user, run=run).changed:
                    updated.append(bundle.name)
                    changed.append(row.pk)
                else:
                    unchanged.append(bundle.name)
            if run is not None:
                again = [row.pk for row in existing.values() if row.run_id != run.pk and not row.imported_again]
                Scenario.objects.filter(pk__in=again).update(imported_again=True)
        if changed:
            link_copies(project, changed)
        if created:
            data: dict[str, object] = {"created": len(created), "run": run and str(run.pk)}
            AuditEntry.record(actor=user, project=project, action="scenario.take_in", subject=project.slug, data=data)
    return UpsertedBundles(tuple(created), tuple(updated), tuple(unchanged))


def _batches(bundles: Sequence[Document]) -> Iterable[list[Document]]:
    """Batches in order, without a name twice in one batch."""
    batch: list[Document] = []
    names: set[str] = set()
    for bundle in bundles:
        if bundle.name in names or len(batch) >= BATCH:
            yield batch
            batch, names = [], set()
        batch.append(bundle)
        names.add(bundle.name)
    if batch:
        yield batch


def _create(project: Project, bundles: Sequence[Document], run: Run | None) -> list[int]:
    rows = Scenario.objects.bulk_create(
        [Scenario(project=project, run=run, **columns_of(bundle)) for bundle in bundles]
    )
    made = list(zip(rows, bundles, strict=True))
    ScenarioText.objects.bulk_create([ScenarioText(scenario=row, bundle=bundle.document()) for row, bundle in made])
    ScenarioAxis.objects.bulk_create([axis for row, bundle in made for axis in axis_rows(row, bundle)])
    return [row.pk for row in rows]
