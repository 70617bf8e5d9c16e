"""Emit: a notice is written with what it tells of, and sent once that has committed."""

import logging
from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from curation.projects.models import Project
from curation.web.prepared import Prepared
from curation.webhooks.models import Delivery, Event, Webhook

logger = logging.getLogger(__name__)


def emit(project: Project, event: Event, data: Mapping[str, object]) -> int:
    """Writes one delivery for each webhook that wants the event; returns how many. Call it inside the transaction."""
    now = timezone.now()
    wanted = [hook for hook in _of_project.rows(project=project.pk) if event.value in hook.events]
    body = {"event": event.value, "project": project.slug, "created_at": now.isoformat(), "data": dict(data)}
    if wanted:
        Delivery.objects.bulk_create(
            Delivery(webhook=hook, event=event.value, body=body, due_at=now) for hook in wanted
        )
        transaction.on_commit(_ring)
    return len(wanted)


# Asked by every decision, mostly to find that nobody listens.
_of_project = Prepared(lambda project: Webhook.objects.filter(project=project), project=int)


def _ring() -> None:
    """Asks a worker to deliver now; without a broker the next round of beat does."""
    from curation.webhooks.tasks import deliver

    try:
        deliver.apply_async(retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("broker does not answer, notices wait: %s", error)
