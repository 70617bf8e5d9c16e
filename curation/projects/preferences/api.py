"""REST calls of the caller's own preferences."""

from django.http import HttpRequest
from ninja import Router

from curation.projects.access import principal_of
from curation.projects.preferences.change import change_preferences, preferences_of
from curation.projects.preferences.schemas import PreferencesIn, PreferencesOut

router = Router(tags=["preferences"])


@router.get("/preferences", response=PreferencesOut, summary="Your own keys and tables")
def get_preferences(request: HttpRequest) -> PreferencesOut:
    return PreferencesOut.of(preferences_of(principal_of(request).user))


@router.patch("/preferences", response=PreferencesOut, summary="Change your own keys and tables")
def patch_preferences(request: HttpRequest, body: PreferencesIn) -> PreferencesOut:
    """A key that another action already has is refused with both names."""
    user = principal_of(request).user
    return PreferencesOut.of(change_preferences(user, keys=body.keys, tables=body.tables, density=body.density))
