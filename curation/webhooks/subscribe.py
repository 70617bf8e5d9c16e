"""Add and remove webhooks: admins only, recorded in the audit log."""

import secrets
from collections.abc import Sequence

from django.db import transaction

from curation.projects.access import Access
from curation.projects.audit import record
from curation.projects.models import Scope
from curation.web.ids import find
from curation.web.outbound.addresses import WEBHOOKS, refuse_private
from curation.web.problems import Conflict, FieldError, Invalid
from curation.webhooks.models import Event, Webhook

MAX_WEBHOOKS = 20


def subscribe(*, access: Access, url: str, events: Sequence[str]) -> Webhook:
    """Add a webhook. Raises `Invalid` for an unknown event or a forbidden address, `Conflict` over the limit."""
    access.require(Scope.ADMIN)
    unknown = sorted(set(events) - set(Event.values))
    if unknown or not events:
        wrong = f"unknown event {', '.join(unknown)}" if unknown else "no event"
        raise Invalid.fields([FieldError("events", f"{wrong}; choose from {', '.join(Event.values)}")])
    refuse_private(url, WEBHOOKS)
    with transaction.atomic():
        if Webhook.objects.filter(project=access.project).count() >= MAX_WEBHOOKS:
            raise Conflict(f"A project has at most {MAX_WEBHOOKS} webhooks; remove one.", code="too_many_webhooks")
        hook = Webhook.objects.create(
            project=access.project,
            url=url,
            events=sorted(set(events)),
            nonce=secrets.token_hex(16),
            created_by=access.user,
        )
        record(actor=access.user, project=access.project, action="webhook.create", subject=url)
    return hook


def webhook_of(access: Access, webhook_id: str) -> Webhook:
    return find(Webhook.objects.filter(project=access.project).select_related("project"), webhook_id, "webhook")


def unsubscribe(*, access: Access, webhook_id: str) -> None:
    """Remove a webhook and its deliveries."""
    access.require(Scope.ADMIN)
    hook = webhook_of(access, webhook_id)
    with transaction.atomic():
        record(actor=access.user, project=access.project, action="webhook.delete", subject=hook.url)
        hook.delete()
