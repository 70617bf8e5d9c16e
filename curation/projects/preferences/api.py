from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Router

from curation.projects.access import principal_of
from curation.projects.models import Preferences
from curation.projects.preferences.change import change_preferences, preferences_of
from curation.projects.preferences.schemas import PreferencesIn, PreferencesOut
from curation.web.http.etag import seen_version, set_etag, version_of

router = Router(tags=["preferences"])


@router.get("/preferences", response=PreferencesOut, summary="Your own keys and tables")
def get_preferences(request: HttpRequest, response: HttpResponse) -> PreferencesOut:
    return _answer(response, preferences_of(principal_of(request).user))


@router.patch("/preferences", response=PreferencesOut, summary="Change your own keys and tables")
def patch_preferences(request: HttpRequest, response: HttpResponse, body: PreferencesIn) -> PreferencesOut:
    """A key that another action already has is refused with both names."""
    user = principal_of(request).user
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
