"""The dependents of a project's settings in other apps: names that must exist, and rows that change with them.

An app registers a `Dependent` when it is loaded, so that every way to change settings asks it: the page, REST, a file.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated

from pydantic import Field, PlainSerializer

from curation.projects.models import Project
from curation.projects.settings.document import ProjectSettings
from curation.projects.settings.patch import ChangeOut, Json, differences, merge
from curation.web.problems import FieldError, Invalid
from curation.web.refusals import all_checks, read_partly
from curation.web.schemas import out

# Label and URL; a response has the URL.
Link = Annotated[tuple[str, str], PlainSerializer(lambda link: link[1], return_type=str)]


@out
class MissingOut:
    """A name in a setting, by the setting's dotted path, of something that does not exist."""

    path: str = Field(examples=["panel.judges"])
    thing: str = Field(examples=["judge judge-x"])


@out
class MoveOut:
    """Samples that would go from one bucket to another. An empty bucket: no score by the panel that counts."""

    before: str = Field(examples=["final"])
    after: str = Field(examples=["refined"])
    samples: int = Field(examples=[12])
    decided: int = Field(examples=[3], description="How many of them people have decided; decisions stay.")
    examples: list[Link] = Field(examples=[["/p/shell-agents/samples/4711/"]])


SettingsPreview = tuple[tuple[ChangeOut, ...], list[MoveOut]]


class Dependent:
    """An app's part in a change of settings. Each method does nothing unless it is overridden."""

    def names(self, project: Project) -> Mapping[str, Sequence[str]]:
        """Return the names that exist, by the word for them in a setting's schema: `{"names": "models"}`."""
        return {}

    def missing(self, project: Project, settings: ProjectSettings) -> list[MissingOut]:
        return []

    def moves(self, project: Project, settings: ProjectSettings, changed: Collection[str]) -> list[MoveOut]:
        """Return the rows that these settings would move. `changed` are the paths that differ from the stored
        settings."""
        return []

    def apply(self, project: Project, changed: Collection[str]) -> None:
        """Change the rows that follow the settings, in the transaction that saved them."""


_dependents: list[Dependent] = []


def register(dependent: Dependent) -> None:
    _dependents.append(dependent)


def known_names(project: Project) -> dict[str, Sequence[str]]:
    """Return the names that settings can have, by the word for them in a setting's schema."""
    return {word: names for one in _dependents for word, names in one.names(project).items()}


def missing_names(project: Project) -> list[MissingOut]:
    return [missing for one in _dependents for missing in one.missing(project, project.settings)]


def preview_change(project: Project, patch: dict[str, Json]) -> SettingsPreview:
    """Return the settings that the patch changes, and the rows that it moves. Raises `Invalid` as saving it would;
    nothing is written."""
    document = check_change(project, patch)
    changes = differences(project.settings_json, document)
    settings = ProjectSettings.model_validate(document)
    paths = [change.path for change in changes]
    return changes, [move for one in _dependents for move in one.moves(project, settings, paths)]


def check_change(project: Project, patch: Mapping[str, Json]) -> dict[str, Json]:
    """Return the settings with the patch. Raises `Invalid` with every error, including names that do not exist.
    Unchanged names may stay."""
    merged = merge(project.settings_json, patch)
    settings, error = read_partly(ProjectSettings, merged)
    with all_checks() as check:
        with check():
            if error is not None:
                raise Invalid.of(error, "settings")
        for one in _dependents:
            with check():
                _refuse_unknown(one.missing(project, settings), project.settings, settings)
    return merged


def _refuse_unknown(missing: Sequence[MissingOut], before: ProjectSettings, after: ProjectSettings) -> None:
    def changed(path: str) -> bool:
        section, _, name = path.partition(".")
        return bool(getattr(getattr(before, section), name) != getattr(getattr(after, section), name))

    found = [one for one in missing if changed(one.path)]
    if found:
        errors = [FieldError(f"settings.{one.path}", f"{one.thing} does not exist") for one in found]
        raise Invalid("; ".join(error.message for error in errors) + ".", code="unknown_name", errors=errors)


def apply_change(project: Project, changes: Sequence[ChangeOut]) -> None:
    for one in _dependents:
        one.apply(project, [change.path for change in changes])
