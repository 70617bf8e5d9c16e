"""Imports of samples in tests: launched by a person and driven to the end."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User

from curation.duels.models import Duel
from curation.projects.access import Access, access_of
from curation.projects.models import Project
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.models import Run
from tests.imports.bringing import as_lines, upload

ASKED = [{"role": "user", "content": "What is two and two?"}]
FOUR, FIVE = ({"role": "assistant", "content": word} for word in ("Four.", "Five."))


def texts(duel: Duel) -> tuple[str, str | None]:
    """The answers of an imported duel: the one to learn, and its rival."""
    return duel.challenger.text.text, duel.king.text.text if duel.king else None


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
