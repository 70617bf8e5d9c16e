"""The settings tab of webhooks: addresses, events, recent deliveries."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.projects.settings.pages import settings_context
from curation.web.forms import ProblemForm
from curation.web.outbound.addresses import WEBHOOKS, refuse_private
from curation.webhooks.deliver import send_test
from curation.webhooks.models import Delivery, DeliveryState, Event, Webhook
from curation.webhooks.subscribe import rotate_secret, subscribe, unsubscribe, webhook_of

SHOWN = 25


class WebhookForm(ProblemForm):
    url = forms.URLField(
        label="URL", max_length=500, assume_scheme="https", help_text="Receives a POST for each event."
    )
    events = forms.MultipleChoiceField(choices=Event.choices, widget=forms.CheckboxSelectMultiple)

    def check(self) -> None:
        if "url" in self.cleaned_data:
            refuse_private(self.cleaned_data["url"], WEBHOOKS)


@require_http_methods(["GET", "POST"])
@project_page(Scope.ADMIN)
def webhook_list(request: HttpRequest, access: Access) -> HttpResponse:
    form = WebhookForm(request.POST or None)
    created = None
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            created = subscribe(access=access, url=form.cleaned_data["url"], events=form.cleaned_data["events"])
            form = WebhookForm()
    return _page(request, access, form, created)


def _page(request: HttpRequest, access: Access, form: WebhookForm, created: Webhook | None) -> HttpResponse:
    deliveries = Delivery.objects.filter(webhook__project=access.project).select_related("webhook")
    context = {
        **settings_context(access, "webhooks", f"/api/v1/projects/{access.project.slug}/webhooks"),
        "form": form,
        "created": created,
        "rows": Webhook.objects.filter(project=access.project),
        "deliveries": deliveries.order_by("-id")[:SHOWN],
    }
    return render(request, "webhooks/list.html", context, status=form.status)


@require_POST
@project_page(Scope.ADMIN)
def webhook_test(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """Send a test event now; its outcome is the first row of the deliveries."""
    sent = send_test(webhook_of(access, pk), user=access.user)
    if sent.state == DeliveryState.DELIVERED:
        messages.success(request, f"The test event arrived: {sent.status} after {sent.latency_ms} ms.")
    else:
        messages.error(request, f"The test event did not arrive: {sent.error or sent.status}")
    return redirect("webhook-list", access.project.slug)


@require_POST
@project_page(Scope.ADMIN)
def webhook_rotate(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """The new secret is shown only in this response."""
    return _page(request, access, WebhookForm(), rotate_secret(access=access, webhook_id=pk))


@require_POST
@project_page(Scope.ADMIN)
def webhook_delete(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    unsubscribe(access=access, webhook_id=pk)
    return redirect("webhook-list", access.project.slug)
