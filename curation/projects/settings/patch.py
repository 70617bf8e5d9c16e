"""Apply a partial change to a project's settings, and list its differences.

Only changed settings are stored; defaults come from `ProjectSettings` when they are read.
"""

from collections.abc import Mapping
from typing import TypeAlias

from pydantic import Field, JsonValue
from pydantic.fields import FieldInfo

from curation.projects.settings.document import ProjectSettings
from curation.projects.settings.fields import SettingsSection
from curation.web.schemas import out

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
# These dictionaries are replaced as a whole, not merged.
WHOLE = {"panel.weights", "taxonomy.axes", "evaluation.families", "scan.actions"}


@out
class ChangeOut:
    path: str = Field(examples=["thresholds.final"])
    before: JsonValue = Field(examples=[80.0])
    after: JsonValue = Field(examples=[85.0])


def merge(stored: Mapping[str, Json], patch: Mapping[str, Json]) -> dict[str, Json]:
    """Return `stored` with `patch` merged in (RFC 7396: null resets a setting to its default); nothing is checked."""
    return _merge(stored, patch, "")


def differences(before: Mapping[str, Json], after: Mapping[str, Json]) -> tuple[ChangeOut, ...]:
    """The settings whose effective values differ between two stored documents."""
    old, new = flatten(ProjectSettings.model_validate(before)), flatten(ProjectSettings.model_validate(after))
    return tuple(ChangeOut(path, old[path], new[path]) for path in new if old[path] != new[path])


def flatten(settings: ProjectSettings) -> dict[str, Json]:
    """All settings by their dotted paths, in the order of the document."""
    return {
        f"{section}.{key}": value
        for section, values in settings.model_dump(mode="json").items()
        for key, value in values.items()
    }


def field_at(path: str) -> FieldInfo:
    section, key = path.split(".")
    kind = ProjectSettings.model_fields[section].annotation
    if not (isinstance(kind, type) and issubclass(kind, SettingsSection)):
        raise TypeError(f"{section} is not a section")
    return kind.model_fields[key]


def _merge(stored: Mapping[str, Json], patch: Mapping[str, Json], at: str) -> dict[str, Json]:
    merged = dict(stored)
    for key, value in patch.items():
        path = f"{at}.{key}" if at else key
        if value is None:
            # An unknown key must stay, so that validation refuses it.
            if key in merged or _known(path):
                merged.pop(key, None)
            else:
                merged[key] = None
        elif isinstance(value, dict) and path not in WHOLE:
            inner = merged.get(key)
            merged[key] = _merge(inner if isinstance(inner, dict) else {}, value, path)
        else:
            merged[key] = value
    return merged


def _known(path: str) -> bool:
    section, _, key = path.partition(".")
    field = ProjectSettings.model_fields.get(section)
    return field is not None and (not key or f"{section}.{key}" in flatten(ProjectSettings()))
