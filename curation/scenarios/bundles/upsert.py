"""Many bundles at once, by their names: new ones are made, differing ones edited, the rest left alone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction

from curation.projects.audit import record
from curation.projects.models import Project
from curation.runs.models import Run
from curation.scenarios.bundles.document import Bundle
from curation.scenarios.bundles.save import axis_rows, columns_of, save_scenario
from curation.scenarios.models import Scenario, ScenarioAxis, ScenarioText

TOGETHER = 500


@dataclass(frozen=True, slots=True)
class TakenIn:
    """Names, in the order in which the bundles came. `updated` ones are drafts again."""

    created: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: tuple[str, ...]


def take_in(*, project: Project, bundles: Sequence[Bundle], user: User | None, run: Run | None = None) -> TakenIn:
    """All or nothing; taking the same bundles in again changes nothing. Of two with one name the later one stays."""
    created: list[str] = []
    updated: list[str] = []
    unchanged: list[str] = []
    with transaction.atomic():
        # One at a time writes many to a project: what is found missing is still missing when it is written.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        for batch in _each_name_once(bundles):
            there = {row.name: row for row in Scenario.objects.of(project).filter(name__in=[b.name for b in batch])}
            _create(project, [bundle for bundle in batch if bundle.name not in there], run)
            for bundle in batch:
                row = there.get(bundle.name)
                if row is None:
                    created.append(bundle.name)
                elif save_scenario(project=project, bundle=bundle, user=user, scenario=row, run=run).changed:
                    updated.append(bundle.name)
                else:
                    unchanged.append(bundle.name)
        if created:
            data: dict[str, object] = {"created": len(created), "run": run and str(run.pk)}
            record(actor=user, project=project, action="scenario.take_in", subject=project.slug, data=data)
    return TakenIn(tuple(created), tuple(updated), tuple(unchanged))


def _each_name_once(bundles: Sequence[Bundle]) -> Iterable[list[Bundle]]:
    """Batches in order; a name that comes again begins the next one, where it meets its earlier self."""
    batch: list[Bundle] = []
    names: set[str] = set()
    for bundle in bundles:
        if bundle.name in names or len(batch) >= TOGETHER:
            yield batch
            batch, names = [], set()
        batch.append(bundle)
        names.add(bundle.name)
    if batch:
        yield batch


def _create(project: Project, bundles: Sequence[Bundle], run: Run | None) -> None:
    rows = Scenario.objects.bulk_create(
        [Scenario(project=project, run=run, **columns_of(bundle)) for bundle in bundles]
    )
    made = list(zip(rows, bundles, strict=True))
    ScenarioText.objects.bulk_create([ScenarioText(scenario=row, bundle=bundle.document()) for row, bundle in made])
    ScenarioAxis.objects.bulk_create([axis for row, bundle in made for axis in axis_rows(row, bundle)])
