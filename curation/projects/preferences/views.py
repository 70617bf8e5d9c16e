"""The page of a person's own keys, and the REST calls of preferences."""

from dataclasses import replace
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods
from ninja import Router, Schema
from pydantic import ConfigDict, Field

from curation.projects.access import principal_of
from curation.projects.models import Preferences, Scope
from curation.projects.preferences.change import (
    ACTIONS,
    Density,
    KeyOut,
    TableLayout,
    TableName,
    change_preferences,
    preferences_of,
    printed,
)
from curation.web.forms import ProblemForm
from curation.web.http.responses import seen_version, set_etag, version_of
from curation.web.schemas import StrictModel


class KeysForm(ProblemForm):
    """One field for each action; an empty one is the default."""

    path_prefix = "keys."

    def __init__(self, data: Any = None, *, row: Preferences) -> None:
        super().__init__(data)
        for action in ACTIONS:
            self.fields[action.action] = forms.CharField(
                required=False,
                strip=False,
                label=action.does,
                initial=printed(row.keys.get(action.action, action.default)),
                help_text=printed(action.default),
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
        change_preferences(user, keys={action.action: None for action in ACTIONS})
        messages.success(request, "All keys are the defaults again.")
        return redirect("preferences")
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            change_preferences(user, keys=form.cleaned_data)
            messages.success(request, "Your keys are saved.")
            return redirect("preferences")
    context = {"form": form, "changed": bool(row.keys), "api_path": "/api/v1/preferences"}
    return render(request, "projects/preferences/page.html", context, status=form.status)


class PreferencesOut(Schema):
    keys: list[KeyOut]
    tables: dict[str, TableLayout] = Field(description="Your changes to tables, by the kind of their rows.")
    density: Density

    @classmethod
    def of(cls, row: Preferences) -> "PreferencesOut":
        keys = [replace(one, key=row.keys.get(one.action, one.default)) for one in ACTIONS]
        tables = {name: TableLayout.model_validate(layout) for name, layout in row.tables.items()}
        return cls.model_validate({"keys": keys, "tables": tables, "density": row.density})


class PreferencesIn(StrictModel):
    """Omitted fields keep their values."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"keys": {"approve": "y", "confirm": "Y"}, "density": "roomy"}]}
    )

    keys: dict[str, str | None] | None = Field(
        default=None,
        max_length=len(ACTIONS),
        description="A key by action: one character, or `arrowleft` and the like. Null is the default again.",
    )
    tables: dict[TableName, TableLayout | None] | None = Field(default=None, description="Null is the default again.")
    density: Density | None = None


router = Router(tags=["preferences"])


@router.get("/preferences", response=PreferencesOut, summary="Your own keys and tables")
def get_preferences(request: HttpRequest, response: HttpResponse) -> PreferencesOut:
    principal = principal_of(request)
    principal.require(Scope.READ)
    return _answer(response, preferences_of(principal.user))


@router.patch("/preferences", response=PreferencesOut, summary="Change your own keys and tables")
def patch_preferences(request: HttpRequest, response: HttpResponse, body: PreferencesIn) -> PreferencesOut:
    """A key that another action already has is refused with both names. Keys decide samples, so this needs `review`."""
    principal = principal_of(request)
    principal.require(Scope.REVIEW)
    user = principal.user
    with transaction.atomic():
        # Locked before it is compared: of two writers with the same version one is refused.
        Preferences.objects.get_or_create(user=user)
        row = Preferences.objects.select_for_update().get(user=user)
        seen_version(request, _version(row))
        return _answer(response, change_preferences(user, keys=body.keys, tables=body.tables, density=body.density))


def _answer(response: HttpResponse, row: Preferences) -> PreferencesOut:
    set_etag(response, _version(row))
    return PreferencesOut.of(row)


def _version(row: Preferences) -> str:
    return version_of([row.keys, row.tables, row.density])
