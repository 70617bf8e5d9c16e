"""Retention: exports older than their project's `export.keep_days` are deleted, unless a person keeps them or something
uses them."""

import logging
from collections.abc import Set
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from curation.exports.models import Export, SavedRecipe
from curation.projects.access import Access
from curation.projects.models import Project
from curation.runs.models import Run
from curation.runs.removal import begin_deletion
from curation.web.problems import Conflict
from curation.web.text.figures import counted

logger = logging.getLogger(__name__)


def keep_export(*, access: Access, export: Export, kept: bool) -> None:
    """Keep an export from retention, or no longer. Doing so twice changes nothing."""
    with transaction.atomic():
        if Export.objects.filter(pk=export.pk, kept=not kept).update(kept=kept):
            action = "export.keep" if kept else "export.unkeep"
            access.record(action, f"export {export.pk}")
    export.kept = kept


def delete_old_exports() -> int:
    """Begin the deletion of all exports that are too old, and return their number."""
    deleted = 0
    projects = Project.objects.filter(archived_at=None, deleting_at=None)
    for project in projects.iterator():
        days = project.settings.export.keep_days
        if days is None:
            continue
        before = timezone.now() - timedelta(days=days)
        old = list(Export.objects.of(project).filter(kept=False, created_at__lt=before).order_by("pk"))
        compared = _compared(project) if old else set()
        for export in old:
            deleted += _delete(export, days, compared)
    if deleted:
        logger.info("%s exports are deleted because they are older than their project keeps them", deleted)
    return deleted


def _delete(export: Export, days: int, compared: Set[str]) -> bool:
    if _is_used(export, compared):
        return False
    try:
        with transaction.atomic():
            # A person may have kept it since the list was read.
            if not Export.objects.select_for_update(of=("self",)).filter(pk=export.pk, kept=False).exists():
                return False
            because = f"The export is older than {counted(days, 'day')} (settings.export.keep_days)."
            begin_deletion(row=export.run, label=f"export {export.pk}", actor=None, because=because)
    except Conflict:  # something began to use it, or a person deletes it
        return False
    return True


def _is_used(export: Export, compared: Set[str]) -> bool:
    """Whether a run read it, an experiment trained on it, or it is one of those `compared` with others. A person may
    delete it all the same."""
    runs = Run.objects.filter(project=export.project_id, params__export=str(export.pk), deleting_at=None)
    return str(export.pk) in compared or runs.exclude(kind="push").exists() or export.experiments.exists()


def _compared(project: Project) -> Set[str]:
    """Return the ids of the exports that recipes and other exports of the project are compared with. Two queries."""
    recipes = SavedRecipe.objects.filter(project=project).values_list("document", flat=True)
    exports = Export.objects.of(project).values_list("recipe", flat=True)
    names = (name for recipe in (*recipes, *exports) for name in recipe.get("held_out", ()))
    return {name.split("/")[1] for name in names if name.startswith("export/")}
