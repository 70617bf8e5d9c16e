"""The page of a person's own keys."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from curation.projects.access import principal_of
from curation.projects.models import Preferences
from curation.projects.preferences.change import ACTIONS, change_preferences, preferences_of, printed
from curation.web.forms import ProblemForm


class KeysForm(ProblemForm):
    """One field for each action; an empty one is the default."""

    path_prefix = "keys."

    def __init__(self, data: Any = None, *, row: Preferences) -> None:
        super().__init__(data)
        for action in ACTIONS:
            self.fields[action.name] = forms.CharField(
                required=False,
                strip=False,
                label=action.does,
                initial=printed(row.keys.get(action.name, action.key)),
                help_text=printed(action.key),
                widget=forms.TextInput(
                    attrs={"size": 3, "maxlength": 10, "autocomplete": "off", "spellcheck": "false", "class": "mono"}
                ),
            )


@require_http_methods(["GET", "POST"])
@login_required
def preferences_page(request: HttpRequest) -> HttpResponse:
    user = principal_of(request).user
    row = preferences_of(user)
    form = KeysForm(request.POST or None, row=row)
    if request.method == "POST" and "defaults" in request.POST:
        change_preferences(user, keys={action.name: None for action in ACTIONS})
        messages.success(request, "All keys are the defaults again.")
        return redirect("preferences")
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            change_preferences(user, keys=form.cleaned_data)
            messages.success(request, "Your keys are saved.")
            return redirect("preferences")
    context = {"form": form, "changed": bool(row.keys), "api_path": "/api/v1/preferences"}
    return render(request, "projects/preferences/page.html", context, status=form.status)
