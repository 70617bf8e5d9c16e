"""Partial changes of a project's settings: deep merge, check, and what is different afterwards.

The stored document holds only what somebody set; defaults come from `ProjectSettings` whenever it is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import ValidationError

from curation.projects.settings.document import ProjectSettings
from curation.web.problems import FieldError, Invalid

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
# Dictionaries that are values in themselves: a new one replaces the old one instead of being merged into it.
WHOLE = {"panel.weights", "taxonomy.axes", "evaluation.families"}


@dataclass(frozen=True, slots=True)
class Change:
    """One setting that is different; `path` is dotted, such as `thresholds.final`."""

    path: str
    before: Json
    after: Json


def patched(stored: Mapping[str, Json], patch: Mapping[str, Json]) -> dict[str, Json]:
    """`stored` with `patch` merged in (RFC 7396: null removes, which here means back to the default), checked.

    Raises `Invalid` whose errors name each place as `settings.<section>.<key>`.
    """
    merged = _merge(stored, patch, "")
    try:
        ProjectSettings.model_validate(merged)
    except ValidationError as error:
        errors = [
            FieldError(".".join(["settings", *map(str, e["loc"])]), e["msg"].removeprefix("Value error, "))
            for e in error.errors(include_input=False, include_url=False)
        ]
        raise Invalid("; ".join(f"{e.path}: {e.message}" for e in errors[:5]), errors=errors) from None
    return merged


def differences(before: Mapping[str, Json], after: Mapping[str, Json]) -> tuple[Change, ...]:
    """The settings whose effective values differ between two stored documents."""
    old, new = flat(ProjectSettings.model_validate(before)), flat(ProjectSettings.model_validate(after))
    return tuple(Change(path, old[path], new[path]) for path in new if old[path] != new[path])


def flat(settings: ProjectSettings) -> dict[str, Json]:
    """All settings under their dotted paths, two levels deep, in the order of the document."""
    return {
        f"{section}.{key}": value
        for section, values in settings.model_dump(mode="json").items()
        for key, value in values.items()
    }


def _merge(stored: Mapping[str, Json], patch: Mapping[str, Json], at: str) -> dict[str, Json]:
    merged = dict(stored)
    for key, value in patch.items():
        path = f"{at}.{key}" if at else key
        if value is None:
            # An unknown key must be refused, not silently removed.
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
    return field is not None and (not key or f"{section}.{key}" in flat(ProjectSettings()))
