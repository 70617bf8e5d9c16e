"""Link copies: scenarios of a project that are alike have the same `group`, the id of the first of them."""

from collections.abc import Iterable, Mapping

import numpy as np
from django.db import connections, transaction

from curation.projects.models import Project
from curation.scenarios.copies.signature import VERSION, copy_signature
from curation.scenarios.models import Scenario, ScenarioSignature, ScenarioText
from curation.web.ids import IdList
from judging.likeness.groups import Groups, bands_of, group_exact, group_near

# Two bundles with other words but the same shape have about 0.9; different tasks around one provider 0.5 to 0.7.
THRESHOLD = 0.8
BATCH = 500


@transaction.atomic
def link_copies(project: Project, changed: Iterable[int]) -> None:
    """Sign the bundles that changed, and group all scenarios of the project again.

    Groups are made from all signatures, so that an edit also takes apart what only the old bundle linked. The caller
    has locked the project's row, or else two saves at once could miss each other.
    """
    ids = sorted(changed)
    outdated = Scenario.objects.of(project).exclude(signature__version=VERSION).values_list("pk", flat=True)
    ids = sorted({*ids, *outdated})
    for start in range(0, len(ids), BATCH):
        texts = ScenarioText.objects.filter(scenario_id__in=IdList(ids[start : start + BATCH]))
        ScenarioSignature.objects.bulk_create(
            [_signed(text) for text in texts],
            update_conflicts=True,
            unique_fields=["scenario"],
            update_fields=["version", "exact", "near"],
        )
    _write(project, _groups(project))


def link_all(using: str, **_: object) -> None:
    """Link copies in every project with scenarios that were never signed, or signed by an older version. Called after
    every `migrate`."""
    if ScenarioSignature._meta.db_table not in connections[using].introspection.table_names():
        return  # migrated to an older state
    outdated = Scenario.objects.using(using).exclude(signature__version=VERSION).order_by()
    for pk in list(outdated.values_list("project_id", flat=True).distinct()):
        with transaction.atomic():
            link_copies(Project.objects.select_for_update(no_key=True).only("pk").get(pk=pk), [])


def _signed(text: ScenarioText) -> ScenarioSignature:
    made = copy_signature(text.bundle)
    return ScenarioSignature(scenario_id=text.scenario_id, version=VERSION, exact=made.exact, near=made.near)


def _groups(project: Project) -> dict[int, int]:
    """Scenario → group, for those in groups of more than one."""
    stored = ScenarioSignature.objects.filter(scenario__project=project).order_by("scenario")
    rows = [(pk, bytes(exact), bytes(near)) for pk, exact, near in stored.values_list("scenario", "exact", "near")]
    groups = Groups(len(rows))
    near = [row[2] for row in rows]
    group_exact(groups, np.array([int.from_bytes(row[1]) for row in rows], dtype=np.uint64))
    group_near(groups, bands_of(near), lambda numbers: [near[number] for number in numbers], threshold=THRESHOLD)
    return {rows[member][0]: rows[root][0] for root, members in groups.sets().items() for member in members}


def _write(project: Project, groups: Mapping[int, int]) -> None:
    """Store the groups that differ from the stored ones; a scenario without copies is a group of its own."""
    stored = dict(Scenario.objects.of(project).values_list("pk", "group"))
    changed = [Scenario(pk=pk, group=groups.get(pk, pk)) for pk, old in stored.items() if groups.get(pk, pk) != old]
    Scenario.objects.bulk_update(changed, ["group"], batch_size=BATCH)
