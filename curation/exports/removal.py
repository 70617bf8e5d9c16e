"""An export keeps the runs of its samples from being deleted; an export itself can always be deleted."""

from collections.abc import Iterable
from typing import Any

import orjson
from django.core.files.storage import default_storage
from django.db.models import QuerySet
from django.urls import reverse

from curation.exports.models import Export, FrozenPair, FrozenRow, Round
from curation.projects.access import Access
from curation.projects.removal.rows import Rest, describes, goes_with, register_pages, rests_on
from curation.review.removal import samples_of
from curation.runs.models import Run
from curation.runs.removal import pages_of_runs
from curation.trajectories.models import Pair
from curation.web.ids import find
from curation.web.text.figures import counted

MANIFEST = "manifest.json"
# A larger one is named by its hash alone.
MOST_BYTES = 1_000_000


@rests_on(Run)
def exports_with_its_rows(run: Run) -> Iterable[Rest]:
    mine = Export.objects.filter(project=run.project_id, run__deleting_at=None)
    rows = FrozenRow.objects.filter(sample_id__in=samples_of(run).values("pk")).values("export_id")
    pairs = FrozenPair.objects.filter(pair_id__in=Pair.objects.filter(run=run).values("pk")).values("export_id")
    found = mine.filter(pk__in=rows.union(pairs)).count()
    if found:
        contain = f"{counted(found, 'export')} {'contains' if found == 1 else 'contain'}"
        yield Rest(f"{contain} its rows.", reverse("export-list", args=[run.project.slug]))


@rests_on(Run)
def pushes_in_progress(run: Run) -> Iterable[Rest]:
    export = Export.objects.filter(run=run).first()
    if export is not None:
        for push in Run.objects.live().filter(project=run.project_id, kind="push", params__export=str(export.pk)):
            yield Rest(
                "A run is pushing this export. Wait for it, or cancel it.",
                reverse("run-page", args=[run.project.slug, push.pk]),
            )


@rests_on(Run)
def rounds_with_its_rollouts(run: Run) -> Iterable[Rest]:
    """A round goes with its rollout, unless another round follows it."""
    mine = Round.objects.filter(rollout=run).first()
    if mine is not None and Round.objects.filter(chain=mine.chain, number__gt=mine.number).exists():
        yield Rest(f"Round {mine.number} has a next round.", reverse("round-list", args=[run.project.slug]))


@goes_with(Run)
def its_round(run: Run) -> Iterable[QuerySet[Any]]:
    yield Round.objects.filter(rollout=run)


@describes(Run)
def manifest_of(run: Run) -> dict[str, object]:
    """The manifest stays in the audit log when the files go."""
    export = Export.objects.filter(run=run).first()
    if export is None:
        return {}
    about: dict[str, object] = {
        "export": str(export.pk),
        "manifest_sha256": export.manifest_sha256,
        "files": [{"name": file.name, "rows": file.rows, "sha256": file.sha256} for file in export.files.all()],
    }
    file = export.files.filter(name=MANIFEST).first()
    if file is not None and file.bytes <= MOST_BYTES and default_storage.exists(file.stored_as):
        with default_storage.open(file.stored_as) as opened:
            about["manifest"] = orjson.loads(opened.read())
    return about


def find_export(access: Access, pk: str) -> tuple[Run, str]:
    """An export is deleted with its run."""
    export = find(Export.objects.of(access.project), pk, "export")
    return export.run, f"export {export.pk}"


register_pages("export", pages_of_runs("export-page", "export-list", find_export))
