"""Read and change a person's own settings."""

from collections.abc import Mapping

from django.contrib.auth.models import User
from django.db import transaction

from curation.projects.models import AuditEntry, Preferences
from curation.projects.preferences.keys import checked_keys
from curation.web.database.prepared import Prepared
from curation.web.lists.tables import Density, TableLayout
from curation.web.problems import FieldError, Invalid

MOST_TABLES = 60


def preferences_of(user: User) -> Preferences:
    """Return the user's row; an unsaved one with the defaults where there is none."""
    return _of_user.first(user=user.pk) or Preferences(user=user)


# Every page has them.
_of_user = Prepared(lambda user: Preferences.objects.filter(user=user), user=int)


@transaction.atomic
def change_preferences(
    user: User,
    *,
    keys: Mapping[str, str | None] | None = None,
    tables: Mapping[str, TableLayout | None] | None = None,
    density: Density | None = None,
) -> Preferences:
    """Change the given settings and keep the rest; a key or a table that is None gets its default back.

    Raises `Invalid` for keys that cannot be used or that two actions would have.
    """
    Preferences.objects.get_or_create(user=user)
    row = Preferences.objects.select_for_update().get(user=user)
    before = {"keys": row.keys, "tables": row.tables, "density": row.density}
    if keys is not None:
        row.keys = checked_keys({name: key or "" for name, key in (row.keys | dict(keys)).items()})
    for name, layout in (tables or {}).items():
        row.tables.pop(name, None)
        if layout is not None and layout != TableLayout():
            row.tables[name] = layout.model_dump()
    if len(row.tables) > MOST_TABLES:
        raise Invalid.fields([FieldError("tables", f"at most {MOST_TABLES} tables")])
    row.density = density or row.density
    row.save()
    after = {"keys": row.keys, "tables": row.tables, "density": row.density}
    data = {name: after[name] for name in after if after[name] != before[name]}
    AuditEntry.record(actor=user, action="preferences.change", subject=user.get_username(), data=data)
    return row
