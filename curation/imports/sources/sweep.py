"""Delete uploads that no run names: previewed and never imported, refused at the launch, or of a deleted run."""

import logging
from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone

from curation.imports.sources.stored import UPLOADS, hold_uploads, listed
from curation.runs.models import Item, Run

logger = logging.getLogger(__name__)


def sweep_uploads() -> int:
    """Delete uploads older than `KEEP_UPLOADS_DAYS` that no run names; return their number."""
    deleted = 0
    for folder in _folders(UPLOADS.rstrip("/")):
        project_id = int(folder) if folder.isdecimal() else 0
        named = set(_named_keys(project_id))
        for upload in _folders(f"{UPLOADS}{folder}"):
            for key in _old_files(f"{UPLOADS}{folder}/{upload}"):
                deleted += key not in named and _delete(project_id, key)
    if deleted:
        logger.info("%s uploads that no run names were deleted", deleted)
    return deleted


def _delete(project_id: int, key: str) -> bool:
    """Delete the file, unless a run has named it since the list was read."""
    with transaction.atomic():
        hold_uploads(project_id)
        if key in _named_keys(project_id):
            return False
        default_storage.delete(key)
    folder = key.rpartition("/")[0]
    if not any(listed(folder)):
        default_storage.delete(folder)
    return True


def _named_keys(project_id: int) -> Iterator[str]:
    """Yield the keys in the parameters of the project's runs, and those of files that imports fetched."""
    for params in Run.objects.filter(project=project_id).values_list("params", flat=True).iterator():
        yield from _keys_in(params)
    for data in Item.objects.filter(run__project=project_id, stage="import").values_list("data", flat=True).iterator():
        yield from _keys_in(data)


def _keys_in(value: object) -> Iterator[str]:
    if isinstance(value, str) and value.startswith(UPLOADS):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _keys_in(part)


def _old_files(folder: str) -> Iterator[str]:
    before = timezone.now() - timedelta(days=settings.KEEP_UPLOADS_DAYS)
    for name in listed(folder)[1]:
        key = f"{folder}/{name}"
        try:
            if default_storage.get_modified_time(key) < before:
                yield key
        except FileNotFoundError:
            continue  # deleted meanwhile


def _folders(folder: str) -> list[str]:
    return listed(folder)[0]
