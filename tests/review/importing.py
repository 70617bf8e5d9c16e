"""Imports of samples in tests: launched by a person and driven to the end."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User

from curation.projects.access import Access, access_of
from curation.projects.models import Project
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.models import Run
from tests.imports.bringing import as_lines, upload


def bring_samples(project: Project, user: User, content: Sequence[Any] | bytes, name: str = "", **options: Any) -> Run:
    data = content if isinstance(content, bytes) else as_lines(content)
    params = {"kind": "samples", "upload": upload(project, data, name or "rows.jsonl"), "options": options}
    run = launch(project=project, kind="import", params=params, user=user)
    drive(run.pk)
    run.refresh_from_db()
    return run


def access_to(project: Project, user: User) -> Access:
    access = access_of(user, project)
    assert access is not None
    return access
