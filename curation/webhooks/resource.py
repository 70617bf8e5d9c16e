"""Webhooks: admins only, recorded in the audit log. Their fields, REST calls and settings tab."""

import secrets
from datetime import datetime, timedelta
from typing import Annotated

from django import forms
from django.contrib import messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from ninja import Query
from pydantic import Field

from curation.projects.access import Access, enter, project_page
from curation.projects.models import Scope
from curation.projects.resource import Resource
from curation.projects.settings.context import settings_context
from curation.web.http.responses import version_of
from curation.web.lists.filters import ListParams
from curation.web.outbound.addresses import WEBHOOKS, refuse_private
from curation.web.problems import Conflict, FieldError, Invalid
from curation.web.refusals import all_checks
from curation.web.schema_form import SchemaForm
from curation.web.schemas import Id, Out, Page, StrictModel
from curation.webhooks.deliver import send_test
from curation.webhooks.models import Delivery, DeliveryState, Webhook, WebhookEvent

MAX_WEBHOOKS = 20
# How long an old secret is valid beside its successor, unless the caller says.
KEEP_HOURS = 24
MAX_KEEP_HOURS = 7 * 24
SHOWN = 25


class WebhookIn(StrictModel):
    url: Annotated[str, forms.URLField(max_length=500, assume_scheme="https")] = Field(
        title="URL", examples=["https://hooks.example.org/winnow"], description="Receives a POST for each event."
    )
    events: Annotated[
        list[str], forms.MultipleChoiceField(choices=WebhookEvent.choices, widget=forms.CheckboxSelectMultiple)
    ] = Field(examples=[["run.finished", "export.ready"]])


class WebhookOut(WebhookIn, Out):
    id: Id = Field(examples=["3"])
    created_at: datetime
    old_secret_until: datetime | None = Field(
        description="After a rotation: until then messages are signed with the old secret too."
    )

    @staticmethod
    def resolve_old_secret_until(hook: Webhook) -> datetime | None:
        return hook.previous_until if len(hook.valid_secrets()) > 1 else None


class NewWebhookOut(WebhookOut):
    """`secret` is shown only once. Libraries of the Standard Webhooks scheme take it as it is."""

    secret: str | None = Field(examples=["whsec_…"])


class RotationIn(StrictModel):
    keep_hours: int = Field(
        KEEP_HOURS,
        ge=0,
        le=MAX_KEEP_HOURS,
        examples=[24],
        description="How long the old secret stays valid; 0 ends it.",
    )


class DeliveryOut(Out):
    """One event for one webhook, and its last try. `response` is the beginning of the receiver's response."""

    id: Id = Field(examples=["17"])
    event: str = Field(examples=["run.finished"])
    state: str = Field(examples=["delivered"], description="`pending`, `delivered` or `failed`.")
    attempts: int = Field(examples=[1])
    status: int | None = Field(examples=[200], description="HTTP status; null if there was no response.")
    latency_ms: int | None = Field(examples=[84])
    error: str
    response: str = Field(examples=["ok"])
    due_at: datetime | None = Field(description="When a pending delivery is tried next.")
    created_at: datetime

    @staticmethod
    def resolve_due_at(row: Delivery) -> datetime | None:
        return row.due_at if row.state == DeliveryState.PENDING else None


class Webhooks(Resource[Webhook]):
    model, noun, plural, tag = Webhook, "webhook", "webhooks", "webhooks"
    path, row_path = "/webhooks", "/projects/{slug}/webhooks/{webhook_id}"
    calls = ("list", "post", "get", "delete")
    body, out, made, secret = WebhookIn, WebhookOut, NewWebhookOut, "secret"
    reads = Scope.ADMIN

    def rows(self, access: Access) -> QuerySet[Webhook]:
        return Webhook.objects.filter(project=access.project).select_related("project")

    def create(self, access: Access, body: WebhookIn) -> Webhook:
        """Raises `Invalid` for an unknown event or a forbidden address, `Conflict` over the limit."""
        if self.rows(access).count() >= MAX_WEBHOOKS:
            raise Conflict(f"A project has at most {MAX_WEBHOOKS} webhooks; remove one.", code="too_many_webhooks")
        return super().create(access, body)

    def write(self, access: Access, row: Webhook, body: WebhookIn) -> None:
        with all_checks() as check:
            with check():
                unknown = sorted(set(body.events) - set(WebhookEvent.values))
                if unknown or not body.events:
                    wrong = f"unknown event {', '.join(unknown)}" if unknown else "no event"
                    raise Invalid.fields(
                        [FieldError("events", f"{wrong}; choose from {', '.join(WebhookEvent.values)}")]
                    )
            with check():
                refuse_private(body.url, WEBHOOKS)
        row.url, row.events, row.nonce = body.url, sorted(set(body.events)), secrets.token_hex(16)

    def version(self, access: Access, row: Webhook) -> str:
        return version_of([row.url, row.events, row.previous_until])

    def rotate(self, access: Access, row: Webhook, keep_hours: int = KEEP_HOURS) -> Webhook:
        """Give the webhook a new secret. For `keep_hours`, messages are signed with the old one too."""
        access.require(Scope.ADMIN)
        with transaction.atomic():
            # Locked: of two rotations at the same time, the second sees the first one's secret as the old one.
            row = self.locked(access, row)
            row.previous_nonce, row.nonce = row.nonce, secrets.token_hex(16)
            row.previous_until = timezone.now() + timedelta(hours=keep_hours)
            row.save(update_fields=["nonce", "previous_nonce", "previous_until"])
            self.record(access, "rotate", row, {"old_valid_until": row.previous_until.isoformat()})
        return row


webhooks = Webhooks()
router = webhooks.router()


@router.post(
    "/projects/{slug}/webhooks/{webhook_id}/rotate", response={201: NewWebhookOut}, summary="Make a new signing secret"
)
def post_webhook_rotate(request: HttpRequest, slug: str, webhook_id: str, body: RotationIn) -> HttpResponse:
    """Messages have a signature for each valid secret, so receivers can change at any time within `keep_hours`."""
    with transaction.atomic():
        access, hook = webhooks.seen_version(request, slug, webhook_id)
        return webhooks.with_secret(access, webhooks.rotate(access, hook, body.keep_hours))


@router.post("/projects/{slug}/webhooks/{webhook_id}/test", response=DeliveryOut, summary="Send a test event now")
def post_webhook_test(request: HttpRequest, slug: str, webhook_id: str) -> Delivery:
    """The response is the delivery with its outcome, after 10 s at most. A test is not repeated."""
    access = enter(request, slug, Scope.ADMIN)
    return send_test(webhooks.one(access, webhook_id), user=access.user)


@router.get(
    "/projects/{slug}/webhooks/{webhook_id}/deliveries",
    response=Page[DeliveryOut],
    summary="Deliveries of a webhook, newest first",
)
def list_deliveries(request: HttpRequest, slug: str, webhook_id: str, params: Query[ListParams]) -> dict[str, object]:
    hook = webhooks.one(enter(request, slug, Scope.ADMIN), webhook_id)
    return params.page(Delivery.objects.filter(webhook=hook)).response()


class WebhookForm(SchemaForm[WebhookIn]):
    def check(self) -> None:
        if "url" in self.cleaned_data:
            refuse_private(self.cleaned_data["url"], WEBHOOKS)


@project_page(Scope.ADMIN, "GET", "POST")
def webhook_list(request: HttpRequest, access: Access) -> HttpResponse:
    form = WebhookForm(request.POST or None)
    created = None
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            created = webhooks.create(access, form.body())
            form = WebhookForm()
    return _page(request, access, form, created)


def _page(request: HttpRequest, access: Access, form: WebhookForm, created: Webhook | None) -> HttpResponse:
    deliveries = Delivery.objects.filter(webhook__project=access.project).select_related("webhook")
    context = {
        **settings_context(access, "webhooks", f"/api/v1/projects/{access.project.slug}/webhooks"),
        "form": form,
        "created": created,
        "rows": webhooks.rows(access),
        "deliveries": deliveries.order_by("-id")[:SHOWN],
    }
    return render(request, "webhooks/list.html", context, status=form.status)


@project_page(Scope.ADMIN, "POST")
def webhook_test(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """Send a test event now; its outcome is the first row of the deliveries."""
    sent = send_test(webhooks.one(access, pk), user=access.user)
    if sent.state == DeliveryState.DELIVERED:
        messages.success(request, f"The test event arrived: {sent.status} after {sent.latency_ms} ms.")
    else:
        messages.error(request, f"The test event did not arrive: {sent.error or sent.status}")
    return redirect("webhook-list", access.project.slug)


@project_page(Scope.ADMIN, "POST")
def webhook_rotate(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """The new secret is shown only in this response."""
    return _page(request, access, WebhookForm(), webhooks.rotate(access, webhooks.one(access, pk)))


@project_page(Scope.ADMIN, "POST")
def webhook_delete(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    webhooks.delete(access, webhooks.one(access, pk))
    return redirect("webhook-list", access.project.slug)
