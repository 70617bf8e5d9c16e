"""Carry out a deletion: stop the work on the rows, erase them in batches, write their counts to the audit log.

One worker at a time has the deletion's lease. A killed worker's lease lapses, and the next one goes on.
"""

import logging
import time
import uuid
from datetime import timedelta

from celery import current_app
from django.db import DatabaseError, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from kombu.exceptions import OperationalError

from curation.projects.audit import record
from curation.projects.models import Deletion, Project
from curation.projects.removal.erase import erase
from curation.projects.removal.nouns import PROJECT, erasable_of

logger = logging.getLogger(__name__)
TASK = "curation.projects.tasks.delete"
LEASE = timedelta(seconds=60)
# Then the worker takes other work first; the rest is a message of its own.
SLICE_SECONDS = 60.0


class SliceOver(Exception):
    """The worker has worked long enough on this deletion, or another one has taken it over."""


def carry_out(deletion_id: int) -> None:
    """Work on a deletion for up to a minute."""
    deletion = _claim(deletion_id)
    if deletion is None:
        return
    try:
        erasable = erasable_of(deletion)
        if not erasable.is_quiet(deletion):
            _release(deletion, "Deletion begins when the project's runs have stopped.")
            return
        until = time.monotonic() + SLICE_SECONDS

        def count(label: str, number: int) -> None:
            deletion.counts[label] = deletion.counts.get(label, 0) + number
            _extend(deletion)

        for rows in erasable.rows(deletion):
            erase(rows, count, go_on=lambda: _go_on(until))
        _finish(deletion)
    except SliceOver:
        _release(deletion, "")
        send(deletion.pk)
    except (DatabaseError, OSError) as error:
        # Such as a row that a request added meanwhile, or a storage that does not answer: the reaper tries again.
        logger.warning("deletion %s: %s", deletion.pk, error)
        _release(deletion, str(error))


def send(deletion_id: int) -> None:
    """Tell a worker. If the broker is down, the reaper does it when it is back."""
    try:
        current_app.send_task(TASK, args=(deletion_id,), retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("broker does not answer, deletion %s waits: %s", deletion_id, error)


def continue_all() -> None:
    """Carry out the deletions that no worker works on."""
    waiting = Deletion.objects.open().filter(_free()).order_by("id")
    for deletion_id in list(waiting.values_list("pk", flat=True)):
        carry_out(deletion_id)


def _free() -> Q:
    return Q(lease_until=None) | Q(lease_until__lt=Now())


def _claim(deletion_id: int) -> Deletion | None:
    owner = uuid.uuid4().hex
    open_one = Deletion.objects.open().filter(_free(), pk=deletion_id)
    if open_one.update(owner=owner, lease_until=Now() + LEASE) != 1:
        return None
    return Deletion.objects.get(pk=deletion_id)


def _extend(deletion: Deletion) -> None:
    """Store the progress in the transaction of a batch, or undo the batch if another worker has the lease."""
    mine = Deletion.objects.filter(pk=deletion.pk, owner=deletion.owner)
    if mine.update(counts=deletion.counts, lease_until=Now() + LEASE) != 1:
        raise SliceOver


def _go_on(until: float) -> None:
    if time.monotonic() > until:
        raise SliceOver


def _release(deletion: Deletion, error: str) -> None:
    mine = Deletion.objects.filter(pk=deletion.pk, owner=deletion.owner)
    mine.update(owner="", lease_until=None, error=error[:500])


def _finish(deletion: Deletion) -> None:
    with transaction.atomic():
        mine = Deletion.objects.open().filter(pk=deletion.pk, owner=deletion.owner)
        if mine.update(finished_at=timezone.now(), lease_until=None, error="") != 1:
            return
        project = None if deletion.noun == PROJECT else Project.objects.filter(pk=deletion.project_id).first()
        record(
            actor=deletion.requested_by,
            project=project,
            action=f"{deletion.noun}.deleted",
            subject=deletion.label,
            data={"id": str(deletion.target_id), "deletion": str(deletion.pk), "rows": deletion.counts},
        )
