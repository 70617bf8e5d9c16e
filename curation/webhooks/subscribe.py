"""Subscribe and unsubscribe: admins only, each in the audit log."""

import secrets
from collections.abc import Sequence

from django.db import transaction

from curation.llm.endpoints.addresses import refuse_private
from curation.projects.access import Access
from curation.projects.audit import record
from curation.projects.models import Scope
from curation.web.ids import find
from curation.web.problems import Conflict, FieldError, Invalid
from curation.webhooks.models import Event, Webhook

MOST = 20


def subscribe(*, access: Access, url: str, events: Sequence[str]) -> Webhook:
    """A new webhook. `Invalid` for an address that may not be called or an unknown event, `Conflict` over the limit."""
    access.require(Scope.ADMIN)
    unknown = sorted(set(events) - set(Event.values))
    if unknown or not events:
        known = ", ".join(Event.values)
        said = f"Unknown event {', '.join(unknown)}" if unknown else "No event"
        raise Invalid(f"{said}; there are {known}.", errors=[FieldError("events", f"one or more of {known}")])
    refuse_private(url)
    with transaction.atomic():
        if Webhook.objects.filter(project=access.project).count() >= MOST:
            raise Conflict(f"A project has at most {MOST} webhooks.", code="too_many_webhooks")
        hook = Webhook.objects.create(
            project=access.project,
            url=url,
            events=sorted(set(events)),
            nonce=secrets.token_hex(16),
            created_by=access.user,
        )
        record(actor=access.user, project=access.project, action="webhook.create", subject=url)
    return hook


def unsubscribe(*, access: Access, webhook_id: str) -> None:
    """Removes the webhook and its deliveries."""
    access.require(Scope.ADMIN)
    hook = find(Webhook.objects.filter(project=access.project), webhook_id, "webhook")
    with transaction.atomic():
        record(actor=access.user, project=access.project, action="webhook.delete", subject=hook.url)
        hook.delete()
