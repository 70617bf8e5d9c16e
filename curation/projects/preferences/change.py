"""Read and change a person's own settings, keys of actions among them."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from django.contrib.auth.models import User
from django.db import transaction
from pydantic import Field

from curation.projects.models import AuditEntry, Preferences
from curation.web.database.queries import Prepared
from curation.web.problems import FieldError, Invalid
from curation.web.schemas import StrictModel, out

Density = Literal["compact", "normal", "roomy"]
ColumnName = Annotated[str, Field(min_length=1, max_length=60)]
Width = Annotated[int, Field(ge=40, le=1200, description="CSS pixels.")]


# How a person wants a list's table, which `static/js/tables.js` applies. It names a table by its `data-rows`, a column
# by the text of its heading.
class TableLayout(StrictModel):
    """Columns that are in neither list are shown where there is room for them."""

    hidden: list[ColumnName] = Field(default=[], max_length=40)
    shown: list[ColumnName] = Field(default=[], max_length=40, description="Shown also on a narrow screen.")
    order: list[ColumnName] = Field(default=[], max_length=40, description="These first, the others after them.")
    pinned: list[ColumnName] = Field(default=[], max_length=40, description="Stay in view when the table is scrolled.")
    widths: dict[ColumnName, Width] = Field(default={}, max_length=40)


TableName = Annotated[
    str, Field(pattern=r"^[a-z]{1,30}$", description="The noun of the list's rows, such as `sample`.")
]

PRINTED = {"arrowleft": "←", "arrowright": "→", "arrowup": "↑", "arrowdown": "↓"}
# Keys that keys.js handles itself, and keys that move the focus or scroll.
FIXED = {
    "?": "shows all keys",
    "escape": "leaves a field and closes",
    "enter": "follows the link that has the focus",
    "tab": "moves the focus",
    " ": "scrolls",
    "space": "scrolls",
    "backspace": "must not do anything that cannot be undone",
    "delete": "must not do anything that cannot be undone",
}
_KEY = re.compile(r"[!-~]")


@out
class KeyOut:
    """`default` is the key that templates declare (`data-key`); `does` says it on every page where it acts."""

    action: str
    default: str
    does: str
    key: str = Field(description="The key that does it for you.")


ACTIONS = tuple(
    KeyOut(action, default, does, default)
    for action, default, does in (
        ("approve", "a", "Approve; gate a scenario"),
        ("reject", "x", "Reject"),
        ("refine", "e", "Refine; edit"),
        ("skip", "s", "Skip"),
        ("pick_left", "1", "Pick the left answer; label a step correct"),
        ("pick_right", "2", "Pick the right answer; label a step wrong"),
        ("useless", "3", "Label a step useless"),
        ("risky", "4", "Label a step risky"),
        ("mask", "m", "Mask a step, or no longer"),
        ("mask_range", "M", "Mask the steps up to this one"),
        ("trim", "u", "Approve up to this step"),
        ("draw", "0", "Draw"),
        ("flag", "f", "Flag"),
        ("comment", "c", "Comment; compare"),
        ("labels", "l", "Answer the labels"),
        ("diff", "d", "Diff on or off"),
        ("undo", "z", "Undo"),
        ("outline", "t", "Outline of the transcript; gate report"),
        ("wrap", "w", "Wrap long lines; approve without the edit"),
        ("drawer", "i", "Rubric and facts; import"),
        ("search", "/", "Search, find"),
        ("next_row", "j", "Next row, turn or step"),
        ("previous_row", "k", "Previous row, turn or step"),
        ("last_row", "G", "Last step"),
        ("tick", "v", "Tick the row"),
        ("previous", "arrowleft", "Previous sample or page"),
        ("next", "arrowright", "Next sample or page"),
        ("new", "n", "New; next sibling"),
        ("open", "o", "Open related page"),
        ("repeat", "r", "Check or run again; raw answers"),
        ("confirm", "y", "Say yes to a question"),
        ("coverage", "h", "Task of the history; coverage of scenarios"),
        ("preview", "p", "Preview of an export"),
        ("go", "g", "Go to a page, with a second key"),
    )
)
BY_NAME = {action.action: action for action in ACTIONS}


def printed(key: str) -> str:
    return PRINTED.get(key, key)


def checked_keys(wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the keys by action that differ from the defaults; an empty one is the default.

    Raises `Invalid`, with `keys.<action>` as the path, for a key that cannot be used or that two actions would have.
    """
    errors: list[FieldError] = []
    chosen = {action.action: action.default for action in ACTIONS}
    for name, given in wanted.items():
        if name not in BY_NAME:
            errors.append(FieldError(f"keys.{name}", f"no such action; the actions are {', '.join(BY_NAME)}"))
            continue
        chosen[name] = key = _canonical(given) or BY_NAME[name].default
        if key in FIXED:
            errors.append(FieldError(f"keys.{name}", f"{given!r} is taken: it {FIXED[key]}"))
        elif key not in PRINTED and not _KEY.fullmatch(key):
            errors.append(
                FieldError(f"keys.{name}", "one character of a keyboard without accents, or an arrow such as ←")
            )
    for name, key in chosen.items():
        other = next((one for one, used in chosen.items() if used == key and one != name), None)
        if other is not None and key != BY_NAME[name].default:
            errors.append(
                FieldError(
                    f"keys.{name}",
                    f"{printed(key)} is already the key of “{BY_NAME[other].does}”. Give that one another key first, "
                    "or choose a different one",
                )
            )
    if errors:
        raise Invalid.fields(errors)
    return {name: key for name, key in chosen.items() if key != BY_NAME[name].default}


def pressed_keys(changed: Mapping[str, str]) -> dict[str, str]:
    """Return the declared key behind each pressed one, where they differ.

    A key that nothing else uses takes the place of the one it replaces, so that keys of dialogs, such as the numbers of
    reasons, stay reachable.
    """
    moved = {action.default: changed[action.action] for action in ACTIONS if action.action in changed}
    declared = {key: old for old, key in moved.items()}
    for key in [key for key in moved.values() if key not in moved]:
        free = declared[key]
        while free in declared:
            free = declared[free]
        moved[key] = free
    return {_pressed(key): _pressed(old) for old, key in moved.items()}


def _canonical(given: str) -> str:
    given = given.strip() or given
    for key, sign in PRINTED.items():
        if given.lower() in (key, sign):
            return key
    return given if len(given) == 1 else given.lower()


def _pressed(key: str) -> str:
    """As keys.js names it: a capital is Shift and its letter."""
    return f"shift+{key.lower()}" if key.isalpha() and key.isupper() and len(key) == 1 else key


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
