"""REST calls of webhooks."""

from datetime import datetime

import orjson
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import Field

from curation.projects.access import enter
from curation.projects.models import Scope
from curation.web.http.idempotency import store_instead
from curation.web.lists.params import ListParams
from curation.webhooks.models import Webhook
from curation.webhooks.subscribe import subscribe, unsubscribe

router = Router(tags=["webhooks"])


class WebhookIn(Schema):
    url: str = Field(examples=["https://hooks.example.org/winnow"])
    events: list[str] = Field(examples=[["run.finished", "export.ready"]])


class WebhookOut(Schema):
    id: str = Field(examples=["3"])
    url: str
    events: list[str]
    created_at: datetime


class NewWebhookOut(WebhookOut):
    """`secret` is shown only once; it is the key of the HMAC-SHA256 in `Winnow-Signature`."""

    secret: str | None = Field(examples=["whsec_…"])


class WebhookPage(Schema):
    data: list[WebhookOut]
    next_cursor: str | None
    total: int | None = None


@router.get("/projects/{slug}/webhooks", response=WebhookPage, exclude_unset=True, summary="List webhooks")
def list_webhooks(request: HttpRequest, slug: str, params: Query[ListParams]) -> dict[str, object]:
    access = enter(request, slug, Scope.ADMIN)
    return params.page(Webhook.objects.filter(project=access.project)).response(_out)


@router.post("/projects/{slug}/webhooks", response={201: NewWebhookOut}, summary="Add a webhook")
def post_webhook(request: HttpRequest, slug: str, body: WebhookIn) -> HttpResponse:
    access = enter(request, slug, Scope.ADMIN)
    hook = subscribe(access=access, url=body.url, events=body.events)
    shown = {**_out(hook), "secret": hook.secret}
    response = HttpResponse(orjson.dumps(shown), status=201, content_type="application/json")
    # The response stored for a repeated `Idempotency-Key` must not contain the secret.
    store_instead(response, orjson.dumps({**shown, "secret": None}))
    return response


@router.delete("/projects/{slug}/webhooks/{webhook_id}", response={204: None}, summary="Remove a webhook")
def delete_webhook(request: HttpRequest, slug: str, webhook_id: str) -> Status[None]:
    unsubscribe(access=enter(request, slug, Scope.ADMIN), webhook_id=webhook_id)
    return Status(204, None)


def _out(hook: Webhook) -> dict[str, object]:
    return {"id": str(hook.pk), "url": hook.url, "events": hook.events, "created_at": hook.created_at}
