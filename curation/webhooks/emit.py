"""Emit an event: its deliveries are written in the event's transaction and sent after the commit."""

import logging
from collections.abc import Callable, Iterable, Mapping

from django.db import transaction
from kombu.exceptions import OperationalError

from curation.projects.models import Project
from curation.web.database.queries import Prepared, database_now
from curation.webhooks.models import Delivery, Webhook, WebhookEvent

logger = logging.getLogger(__name__)
# Every decision makes this query, and most projects have no webhook.
_first_hook = Prepared(lambda project: Webhook.objects.filter(project=project), project=int)


def emit(project: Project, event: WebhookEvent, data: Mapping[str, object]) -> int:
    """Write a delivery for each webhook that subscribes to the event; return how many. Needs a transaction.

    An archived project sends nothing.
    """
    return emit_each(project, event, lambda: [data])


def emit_each(project: Project, event: WebhookEvent, data: Callable[[], Iterable[Mapping[str, object]]]) -> int:
    """As `emit`, for events that happen together. `data` is only called where a webhook subscribes."""
    if project.archived_at is not None or project.deleting_at is not None:
        return 0
    if _first_hook.first(project=project.pk) is None:
        return 0
    now = database_now()
    wanted = [hook for hook in Webhook.objects.filter(project=project) if event.value in hook.events]
    if not wanted:
        return 0
    about = {"event": event.value, "project": project.slug, "created_at": now.isoformat()}
    bodies = [{**about, "data": dict(one)} for one in data()]
    deliveries = Delivery.objects.bulk_create(
        [Delivery(webhook=hook, event=event.value, body=body, due_at=now) for body in bodies for hook in wanted]
    )
    if deliveries:
        transaction.on_commit(_dispatch)
    return len(deliveries)


def _dispatch() -> None:
    """Ask a worker to deliver now; if the broker is down, beat does within seconds."""
    from curation.webhooks.tasks import deliver

    try:
        deliver.apply_async(retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("broker does not respond, deliveries wait: %s", error)
