"""REST calls of webhooks."""

from datetime import datetime
from typing import ClassVar

import orjson
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import Field

from curation.projects.access import Access, enter
from curation.projects.models import Scope
from curation.web.http.etag import seen_version, set_etag, version_of
from curation.web.http.idempotency import store_instead
from curation.web.ids import find
from curation.web.lists.params import ListParams
from curation.web.lists.schemas import Page
from curation.webhooks.deliver import send_test
from curation.webhooks.models import Delivery, DeliveryState, Webhook
from curation.webhooks.subscribe import (
    KEEP_HOURS,
    MAX_KEEP_HOURS,
    rotate_secret,
    subscribe,
    unsubscribe,
    webhook_of,
)

router = Router(tags=["webhooks"])


class WebhookIn(Schema):
    url: str = Field(examples=["https://hooks.example.org/winnow"])
    events: list[str] = Field(examples=[["run.finished", "export.ready"]])


class WebhookOut(Schema):
    id: str = Field(examples=["3"])
    url: str
    events: list[str]
    created_at: datetime
    old_secret_until: datetime | None = Field(
        description="After a rotation: until then messages are signed with the old secret too."
    )


class NewWebhookOut(WebhookOut):
    """`secret` is shown only once. Libraries of the Standard Webhooks scheme take it as it is."""

    secret: str | None = Field(examples=["whsec_…"])


class RotationIn(Schema):
    keep_hours: int = Field(
        KEEP_HOURS,
        ge=0,
        le=MAX_KEEP_HOURS,
        examples=[24],
        description="How long the old secret stays valid; 0 ends it.",
    )


class DeliveryOut(Schema):
    """One event for one webhook, and its last try. `response` is the beginning of the receiver's response."""

    id: str = Field(examples=["17"])
    event: str = Field(examples=["run.finished"])
    state: str = Field(examples=["delivered"], description="`pending`, `delivered` or `failed`.")
    attempts: int = Field(examples=[1])
    status: int | None = Field(examples=[200], description="HTTP status; null if there was no response.")
    latency_ms: int | None = Field(examples=[84])
    error: str
    response: str = Field(examples=["ok"])
    due_at: datetime | None = Field(description="When a pending delivery is tried next.")
    created_at: datetime


class DeliveryList(ListParams):
    sorts: ClassVar = ("-id", "id")


@router.get("/projects/{slug}/webhooks", response=Page[WebhookOut], summary="List webhooks")
def list_webhooks(request: HttpRequest, slug: str, params: Query[ListParams]) -> dict[str, object]:
    access = enter(request, slug, Scope.ADMIN)
    return params.page(Webhook.objects.filter(project=access.project)).response(_out)


@router.post("/projects/{slug}/webhooks", response={201: NewWebhookOut}, summary="Add a webhook")
def post_webhook(request: HttpRequest, slug: str, body: WebhookIn) -> HttpResponse:
    access = enter(request, slug, Scope.ADMIN)
    return _with_secret(subscribe(access=access, url=body.url, events=body.events))


@router.get("/projects/{slug}/webhooks/{webhook_id}", response=WebhookOut, summary="One webhook")
def get_webhook(request: HttpRequest, response: HttpResponse, slug: str, webhook_id: str) -> dict[str, object]:
    hook = webhook_of(enter(request, slug, Scope.ADMIN), webhook_id)
    set_etag(response, _version(hook))
    return _out(hook)


@router.delete("/projects/{slug}/webhooks/{webhook_id}", response={204: None}, summary="Remove a webhook")
def delete_webhook(request: HttpRequest, slug: str, webhook_id: str) -> Status[None]:
    access = enter(request, slug, Scope.ADMIN)
    with transaction.atomic():
        hook = _locked(access, webhook_id)
        seen_version(request, _version(hook), now=_out(hook))
        unsubscribe(access=access, webhook_id=webhook_id)
    return Status(204, None)


@router.post(
    "/projects/{slug}/webhooks/{webhook_id}/rotate", response={201: NewWebhookOut}, summary="Make a new signing secret"
)
def post_webhook_rotate(request: HttpRequest, slug: str, webhook_id: str, body: RotationIn) -> HttpResponse:
    """Messages have a signature for each valid secret, so receivers can change at any time within `keep_hours`."""
    access = enter(request, slug, Scope.ADMIN)
    with transaction.atomic():
        hook = _locked(access, webhook_id)
        seen_version(request, _version(hook), now=_out(hook))
        return _with_secret(rotate_secret(access=access, webhook_id=webhook_id, keep_hours=body.keep_hours))


@router.post("/projects/{slug}/webhooks/{webhook_id}/test", response=DeliveryOut, summary="Send a test event now")
def post_webhook_test(request: HttpRequest, slug: str, webhook_id: str) -> dict[str, object]:
    """The response is the delivery with its outcome, after 10 s at most. A test is not repeated."""
    access = enter(request, slug, Scope.ADMIN)
    return _delivery(send_test(webhook_of(access, webhook_id), user=access.user))


@router.get(
    "/projects/{slug}/webhooks/{webhook_id}/deliveries",
    response=Page[DeliveryOut],
    summary="Deliveries of a webhook, newest first",
)
def list_deliveries(request: HttpRequest, slug: str, webhook_id: str, params: Query[DeliveryList]) -> dict[str, object]:
    hook = webhook_of(enter(request, slug, Scope.ADMIN), webhook_id)
    return params.page(Delivery.objects.filter(webhook=hook)).response(_delivery)


def _delivery(row: Delivery) -> dict[str, object]:
    return {
        "id": str(row.pk),
        "event": row.event,
        "state": row.state,
        "attempts": row.attempts,
        "status": row.status,
        "latency_ms": row.latency_ms,
        "error": row.error,
        "response": row.response,
        "due_at": row.due_at if row.state == DeliveryState.PENDING else None,
        "created_at": row.created_at,
    }


def _out(hook: Webhook) -> dict[str, object]:
    until = hook.previous_until if len(hook.valid_secrets()) > 1 else None
    return {
        "id": str(hook.pk),
        "url": hook.url,
        "events": hook.events,
        "created_at": hook.created_at,
        "old_secret_until": until,
    }


def _locked(access: Access, webhook_id: str) -> Webhook:
    return find(Webhook.objects.select_for_update().filter(project=access.project), webhook_id, "webhook")


def _version(hook: Webhook) -> str:
    return version_of([hook.url, hook.events, hook.previous_until])


def _with_secret(hook: Webhook) -> HttpResponse:
    shown = {**_out(hook), "secret": hook.secret}
    response = HttpResponse(orjson.dumps(shown), status=201, content_type="application/json")
    set_etag(response, _version(hook))
    # The response stored for a repeated `Idempotency-Key` must not contain the secret.
    store_instead(response, orjson.dumps({**shown, "secret": None}))
    return response
