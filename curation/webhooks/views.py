"""The settings tab of webhooks: addresses, events, the last deliveries."""

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.projects.settings.pages import settings_context
from curation.web.problems import Problem
from curation.webhooks.models import Delivery, Event, Webhook
from curation.webhooks.subscribe import subscribe, unsubscribe

SHOWN = 25


class WebhookForm(forms.Form):
    url = forms.URLField(
        label="Address", max_length=500, assume_scheme="https", help_text="Gets a signed POST for each event."
    )
    events = forms.MultipleChoiceField(choices=Event.choices, widget=forms.CheckboxSelectMultiple)


@require_http_methods(["GET", "HEAD", "POST"])
@project_page(Scope.ADMIN)
def webhook_list(request: HttpRequest, access: Access) -> HttpResponse:
    form = WebhookForm(request.POST or None)
    made = None
    if request.method == "POST" and form.is_valid():
        try:
            made = subscribe(access=access, url=form.cleaned_data["url"], events=form.cleaned_data["events"])
            form = WebhookForm()
        except Problem as problem:
            form.add_error(None, problem.detail)
    deliveries = Delivery.objects.filter(webhook__project=access.project).select_related("webhook")
    context = {
        **settings_context(access, "webhooks", f"/api/v1/projects/{access.project.slug}/webhooks"),
        "form": form,
        "made": made,
        "rows": Webhook.objects.filter(project=access.project),
        "deliveries": deliveries.order_by("-id")[:SHOWN],
    }
    return render(request, "webhooks/list.html", context, status=422 if form.errors else 200)


@require_POST
@project_page(Scope.ADMIN)
def webhook_delete(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    unsubscribe(access=access, webhook_id=pk)
    return redirect("webhook-list", access.project.slug)
