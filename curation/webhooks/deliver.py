"""POST due deliveries, signed; retry with growing pauses and give up after the last."""

import hashlib
import hmac
import time
from datetime import timedelta

import httpx
import orjson
from django.db import transaction
from django.utils import timezone

from curation.llm.endpoints.addresses import refuse_private
from curation.web.problems import Problem
from curation.webhooks.models import Delivery, DeliveryState

SIGNATURE = "Winnow-Signature"
TIMEOUT_SECONDS = 10.0
PAUSES = (10, 60, 5 * 60, 30 * 60, 2 * 3600)
BATCH = 20


def deliver_due() -> int:
    """Try every delivery that is due; return how many were tried."""
    tried = 0
    while claimed := _claim():
        for delivery in claimed:
            _try(delivery)
            tried += 1
    return tried


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """`t=<Unix seconds>,v1=<hex>`: HMAC-SHA256 of `<t>.<body>`, so that an old message cannot be replayed as new."""
    digest = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"


def _claim() -> list[Delivery]:
    """Claim some due deliveries by moving `due_at` past the longest time that their tries can take."""
    now = timezone.now()
    with transaction.atomic():
        due = list(
            Delivery.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("webhook")
            .filter(state=DeliveryState.PENDING, due_at__lte=now)
            .order_by("due_at")[:BATCH]
        )
        held = now + timedelta(seconds=BATCH * TIMEOUT_SECONDS + 30)
        Delivery.objects.filter(pk__in=[delivery.pk for delivery in due]).update(due_at=held)
    return due


def _try(delivery: Delivery) -> None:
    status, error = _post(delivery)
    attempts = delivery.attempts + 1
    changes: dict[str, object] = {"attempts": attempts, "status": status, "error": error[:500]}
    if status is not None and 200 <= status < 300:
        changes["state"] = DeliveryState.DELIVERED
    elif attempts > len(PAUSES):
        changes["state"] = DeliveryState.FAILED
    else:
        changes["due_at"] = timezone.now() + timedelta(seconds=PAUSES[attempts - 1])
    Delivery.objects.filter(pk=delivery.pk).update(**changes)


def _post(delivery: Delivery) -> tuple[int | None, str]:
    """(status, error): the HTTP status, or None and why there was no response. Redirects are not followed."""
    hook = delivery.webhook
    body = orjson.dumps({"id": str(delivery.pk), **delivery.body})
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Winnow",
        "Winnow-Event": delivery.event,
        "Winnow-Delivery": str(delivery.pk),
        SIGNATURE: signature(hook.secret, int(time.time()), body),
    }
    try:
        refuse_private(hook.url)
        response = httpx.post(hook.url, content=body, headers=headers, timeout=TIMEOUT_SECONDS)
    except Problem as problem:
        return None, problem.detail
    except httpx.HTTPError as error:
        return None, f"{type(error).__name__}: {error}"
    return response.status_code, "" if response.is_success else response.text[:200]
