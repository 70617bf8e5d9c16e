"""Create a project; change its name, guidelines and settings."""

import itertools
import re
from collections.abc import Mapping

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils.text import slugify

from curation.projects.access import Access, may_create_projects
from curation.projects.members.change import require_person
from curation.projects.models import AuditEntry, Member, Project, Role, Scope
from curation.projects.settings.dependents import apply_change, preview_change
from curation.projects.settings.patch import ChangeOut, Json, merge
from curation.web.problems import Conflict, FieldError, Invalid, NotAllowed, Stale

SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
MAX_NAME, MAX_SLUG = 120, 60
NO_RIGHT = (
    "You may not create projects on this server. Ask its operator for the right (PROJECT_CREATORS), "
    "or the admin of a project to add you."
)
MAX_GUIDELINES = 200_000


def create_project(*, user: User, slug: str | None, name: str) -> Project:
    """Create a project with default settings and make `user` its admin. Without a `slug` it is made of the name.

    Raises `NotAllowed` without the right to create projects, `Invalid` for a bad slug or name, `Conflict` for a slug
    that is taken.
    """
    if not may_create_projects(user):
        raise NotAllowed(NO_RIGHT, code="may_not_create_projects")
    require_person(user)
    name = name.strip()
    errors = _text_errors(name=name)
    slug = _free_slug(name) if slug is None else slug
    if not SLUG.fullmatch(slug):
        errors.append(FieldError("slug", "1 to 60 lower-case letters, digits and hyphens, not starting with a hyphen"))
    if errors:
        raise Invalid.fields(errors)
    try:
        with transaction.atomic():
            project = Project.objects.create(slug=slug, name=name)
            Member.objects.create(project=project, user=user, role=Role.ADMIN)
            AuditEntry.record(actor=user, project=project, action="project.create", subject=slug, data={"name": name})
    except IntegrityError:
        taken = f"The slug {slug!r} is taken; choose another."
        raise Conflict(taken, code="slug_taken", errors=[FieldError("slug", "is taken")]) from None
    return project


def _free_slug(name: str) -> str:
    """The name as a slug, with a number if a project has it."""
    base = slugify(name).replace("_", "-").strip("-")[: MAX_SLUG - 4] or "project"
    taken = set(Project.objects.filter(slug__startswith=base).values_list("slug", flat=True))
    numbered = (f"{base}-{number}" for number in itertools.count(2))
    return base if base not in taken else next(slug for slug in numbered if slug not in taken)


def change_project(
    *,
    access: Access,
    name: str | None = None,
    guidelines: str | None = None,
    settings: Mapping[str, Json] | None = None,
    seen_version: int | None = None,
) -> tuple[Project, tuple[ChangeOut, ...]]:
    """Change the given fields, and return the project and the settings that differ from before. `settings` is merged
    deeply, and null resets a setting to its default.

    Raises `Stale` if `seen_version` is not the current version, `Invalid` with the dotted path of each error. A change
    without effect writes nothing and leaves the version.
    """
    access.require(Scope.ADMIN)
    if errors := _text_errors(name=name, guidelines=guidelines):
        raise Invalid.fields(errors)
    with transaction.atomic():
        project = Project.objects.select_for_update().get(pk=access.project.pk)
        if seen_version is not None and seen_version != project.version:
            raise Stale.version(seen_version, project.version)
        changed: list[str] = []
        if name is not None and name.strip() != project.name:
            project.name = name.strip()
            changed.append("name")
        if guidelines is not None and guidelines != project.guidelines:
            project.guidelines = guidelines
            changed.append("guidelines")
        changes, moves = preview_change(project, dict(settings)) if settings else ((), [])
        if settings:
            project.settings_json = merge(project.settings_json, settings)
        if changed or changes:
            project.version += 1
            project.save(update_fields=["name", "guidelines", "settings_json", "version"])
            apply_change(project, changes)
            data: dict[str, object] = {
                "fields": changed,
                "settings": {change.path: [change.before, change.after] for change in changes},
            }
            if moves:
                data["moved"] = [
                    {"before": move.before, "after": move.after, "samples": move.samples} for move in moves
                ]
            access.record("project.update", project.slug, data)
    return project, changes


def _text_errors(*, name: str | None = None, guidelines: str | None = None) -> list[FieldError]:
    errors = []
    if name is not None and not 0 < len(name.strip()) <= MAX_NAME:
        errors.append(FieldError("name", f"1 to {MAX_NAME} characters"))
    if guidelines is not None and len(guidelines) > MAX_GUIDELINES:
        errors.append(FieldError("guidelines", f"at most {MAX_GUIDELINES:,} characters"))
    for field, text in (("name", name), ("guidelines", guidelines)):
        if text and "\x00" in text:
            errors.append(FieldError(field, "contains a NUL character"))
    return errors
