"""Change a project: its name, its guidelines, its settings, under a version that no two writers share."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction

from curation.projects.access import Access
from curation.projects.audit import record
from curation.projects.models import Project, Scope
from curation.projects.pages.create import MAX_NAME
from curation.projects.settings.patch import Change, Json, differences, patched
from curation.web.problems import FieldError, Invalid, Stale

MAX_GUIDELINES = 200_000


@dataclass(frozen=True, slots=True)
class ProjectChange:
    """The project as it is now, and which settings are different from before."""

    project: Project
    settings: tuple[Change, ...]


def change_project(
    *,
    access: Access,
    name: str | None = None,
    guidelines: str | None = None,
    settings: Mapping[str, Json] | None = None,
    seen_version: int | None = None,
) -> ProjectChange:
    """Writes what is given and leaves the rest; `settings` is merged deeply, null takes a key back to its default.

    Raises `Stale` where `seen_version` is not the current one, `Invalid` with the dotted path of what is wrong.
    A change that changes nothing writes nothing and keeps the version.
    """
    access.require(Scope.ADMIN)
    _refuse_bad_text(name, guidelines)
    with transaction.atomic():
        project = Project.objects.select_for_update().get(pk=access.project.pk)
        if seen_version is not None and seen_version != project.version:
            raise Stale(
                f'You read version "{seen_version}", the current one is "{project.version}".',
                current={"version": project.version},
            )
        changed: list[str] = []
        if name is not None and name.strip() != project.name:
            project.name = name.strip()
            changed.append("name")
        if guidelines is not None and guidelines != project.guidelines:
            project.guidelines = guidelines
            changed.append("guidelines")
        moved: tuple[Change, ...] = ()
        if settings:
            document = patched(project.settings_json, settings)
            moved = differences(project.settings_json, document)
            project.settings_json = document
        if changed or moved:
            project.version += 1
            project.save(update_fields=["name", "guidelines", "settings_json", "version"])
            record(
                actor=access.user,
                project=project,
                action="project.update",
                subject=project.slug,
                data={"fields": changed, "settings": {c.path: [c.before, c.after] for c in moved}},
            )
    return ProjectChange(project, moved)


def _refuse_bad_text(name: str | None, guidelines: str | None) -> None:
    errors = []
    if name is not None and not 0 < len(name.strip()) <= MAX_NAME:
        errors.append(FieldError("name", f"1 to {MAX_NAME} characters"))
    if guidelines is not None and len(guidelines) > MAX_GUIDELINES:
        errors.append(FieldError("guidelines", f"at most {MAX_GUIDELINES:,} characters"))
    if any("\x00" in text for text in (name, guidelines) if text):
        errors.append(FieldError("guidelines" if "\x00" in (guidelines or "") else "name", "holds a NUL character"))
    if errors:
        raise Invalid("; ".join(f"{e.path}: {e.message}" for e in errors), errors=errors)
