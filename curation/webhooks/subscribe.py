"""Add and remove webhooks, and change their secrets: admins only, recorded in the audit log."""

import secrets
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from curation.projects.access import Access
from curation.projects.audit import record
from curation.projects.models import Scope
from curation.web.ids import find
from curation.web.outbound.addresses import WEBHOOKS, refuse_private
from curation.web.problems import Conflict, FieldError, Invalid
from curation.web.refusals import all_checks
from curation.webhooks.models import Event, Webhook

MAX_WEBHOOKS = 20
# How long an old secret is valid beside its successor, unless the caller says.
KEEP_HOURS = 24
MAX_KEEP_HOURS = 7 * 24


def subscribe(*, access: Access, url: str, events: Sequence[str]) -> Webhook:
    """Add a webhook. Raises `Invalid` for an unknown event or a forbidden address, `Conflict` over the limit."""
    access.require(Scope.ADMIN)
    with all_checks() as check:
        with check():
            unknown = sorted(set(events) - set(Event.values))
            if unknown or not events:
                wrong = f"unknown event {', '.join(unknown)}" if unknown else "no event"
                raise Invalid.fields([FieldError("events", f"{wrong}; choose from {', '.join(Event.values)}")])
        with check():
            refuse_private(url, WEBHOOKS)
    with transaction.atomic():
        if Webhook.objects.filter(project=access.project).count() >= MAX_WEBHOOKS:
            raise Conflict(f"A project has at most {MAX_WEBHOOKS} webhooks; remove one.", code="too_many_webhooks")
        hook = Webhook.objects.create(
            project=access.project,
            url=url,
            events=sorted(set(events)),
            nonce=_new_nonce(),
            created_by=access.user,
        )
        record(actor=access.user, project=access.project, action="webhook.create", subject=url)
    return hook


def webhook_of(access: Access, webhook_id: str) -> Webhook:
    return find(Webhook.objects.filter(project=access.project).select_related("project"), webhook_id, "webhook")


def rotate_secret(*, access: Access, webhook_id: str, keep_hours: int = KEEP_HOURS) -> Webhook:
    """Give the webhook a new secret. For `keep_hours`, messages are signed with the old one too."""
    access.require(Scope.ADMIN)
    if not 0 <= keep_hours <= MAX_KEEP_HOURS:
        raise Invalid.fields([FieldError("keep_hours", f"0 to {MAX_KEEP_HOURS}; 0 ends the old secret now")])
    with transaction.atomic():
        # Locked: of two rotations at the same time, the second sees the first one's secret as the old one.
        hook = find(Webhook.objects.select_for_update().filter(project=access.project), webhook_id, "webhook")
        hook.previous_nonce, hook.nonce = hook.nonce, _new_nonce()
        hook.previous_until = timezone.now() + timedelta(hours=keep_hours)
        hook.save(update_fields=["nonce", "previous_nonce", "previous_until"])
        data = {"old_valid_until": hook.previous_until.isoformat()}
        record(actor=access.user, project=access.project, action="webhook.rotate", subject=hook.url, data=data)
    return hook


def unsubscribe(*, access: Access, webhook_id: str) -> None:
    access.require(Scope.ADMIN)
    hook = webhook_of(access, webhook_id)
    with transaction.atomic():
        record(actor=access.user, project=access.project, action="webhook.delete", subject=hook.url)
        hook.delete()


def _new_nonce() -> str:
    return secrets.token_hex(16)
