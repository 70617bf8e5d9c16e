"""Make a project; whoever makes it becomes its admin."""

import re

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from curation.projects.audit import record
from curation.projects.models import Member, Project, Role
from curation.web.problems import Conflict, FieldError, Invalid

SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
MAX_NAME = 120


def create_project(*, user: User, slug: str, name: str) -> Project:
    """The new project, with default settings. `Invalid` for a bad slug or name, `Conflict` for a slug that is taken."""
    name = name.strip()
    errors = []
    if not SLUG.fullmatch(slug):
        errors.append(FieldError("slug", "1 to 60 lower-case letters, digits and hyphens, not a hyphen first"))
    if not 0 < len(name) <= MAX_NAME:
        errors.append(FieldError("name", f"1 to {MAX_NAME} characters"))
    if errors:
        raise Invalid("; ".join(f"{e.path}: {e.message}" for e in errors), errors=errors)
    try:
        with transaction.atomic():
            project = Project.objects.create(slug=slug, name=name)
            Member.objects.create(project=project, user=user, role=Role.ADMIN)
            record(actor=user, project=project, action="project.create", subject=slug, data={"name": name})
    except IntegrityError:
        taken = f"The slug {slug!r} is taken; choose another."
        raise Conflict(taken, code="slug_taken", errors=[FieldError("slug", "is taken")]) from None
    return project
