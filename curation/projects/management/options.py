"""Read the options of commands: a project, a user, values by key."""

import json
from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError

from curation.projects.models import Project


def project_named(slug: str) -> Project:
    project = Project.objects.filter(slug=slug).first()
    if project is None:
        raise CommandError(f"There is no project {slug!r}.")
    return project


def user_named(username: str) -> User | None:
    """The user in the audit log; None if the option is not given."""
    user = User.objects.filter(username=username).first() if username else None
    if username and user is None:
        raise CommandError(f"There is no user {username!r}.")
    return user


def values_of(option: str, pairs: Iterable[str]) -> dict[str, Any]:
    """Read the KEY=VALUE of an option that may be repeated. A value that is no JSON is text."""
    values: dict[str, Any] = {}
    for pair in pairs:
        key, found, value = pair.partition("=")
        if not found:
            raise CommandError(f"{option} {pair!r} is not KEY=VALUE.")
        try:
            values[key] = json.loads(value)
        except ValueError:
            values[key] = value
    return values
