"""Archive and delete runs, and rows that are deleted in the same way, such as splits."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from django.apps import apps
from django.contrib.auth.models import User
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from curation.projects.access import Access
from curation.projects.models import AuditEntry, Blocker, Deletion, Project, RemovableRow, Scope
from curation.projects.removal.carry_out import send
from curation.runs.kinds import kind_of
from curation.runs.models import LIVE, ResultOfRun, Run
from curation.web.ids import find
from curation.web.problems import Conflict, NotFound


def find_row(access: Access, noun: str, pk: str) -> tuple[RemovableRow, str]:
    """Return the row of this noun, or the run whose result it is, and its label."""
    for model in apps.get_models():
        if model._meta.model_name == noun and issubclass(model, (RemovableRow, ResultOfRun)):
            rows: Any = model._default_manager
            row: RemovableRow | ResultOfRun = find(rows.of(access.project), pk, noun)
            return (row, row.label) if isinstance(row, RemovableRow) else (row.run, f"{noun} {row.pk}")
    raise NotFound(f"Rows of the kind {noun!r} cannot be archived or deleted.")


def archive_row(*, access: Access, row: RemovableRow, label: str, archived: bool) -> None:
    """Hide the row from lists, or show it again. Raises `Conflict` if it is so already."""
    _require_scope(access, row)
    noun = label.split()[0]
    with transaction.atomic():
        rows = type(row)._base_manager.filter(pk=row.pk, archived_at__isnull=archived)
        if rows.update(archived_at=timezone.now() if archived else None) != 1:
            raise Conflict(f"The {label} is {'already' if archived else 'not'} archived.", code="wrong_state")
        action = f"{noun}.archive" if archived else f"{noun}.unarchive"
        access.record(action, label)
    row.refresh_from_db()


def delete_row(*, access: Access, row: RemovableRow, label: str) -> Deletion:
    """Begin to delete the row; see `begin_deletion`. `label` names the export or evaluation that goes with a run."""
    _require_scope(access, row)
    return begin_deletion(row=row, label=label, actor=access.user)


def begin_deletion(*, row: RemovableRow, label: str, actor: User | None, because: str = "") -> Deletion:
    """Begin to delete the row and its dependent rows; it reads as deleted from now on. Without an `actor` the system
    does it, and `because` is the reason in the audit log.

    Raises `Conflict` with every blocker, in words and with links.
    """
    with transaction.atomic():
        project = Project.objects.select_for_update().get(pk=row.project_id)
        if blockers := blockers_of(row):
            raise Conflict(
                f"The {label} cannot be deleted. " + " ".join(blocker.text for blocker in blockers),
                code="in_use",
                current={"rests": [blocker._asdict() for blocker in blockers]},
            )
        rows = type(row)._base_manager.filter(pk=row.pk, deleting_at=None)
        if rows.update(deleting_at=timezone.now()) != 1:
            raise Conflict(f"The {label} is being deleted.", code="wrong_state")
        deletion = Deletion.objects.create(
            noun=str(row._meta.model_name),
            target_id=row.pk,
            project_id=project.pk,
            label=label,
            requested_by=actor,
            cost=getattr(row, "cost", Decimal(0)),
            cost_unknown_calls=getattr(row, "cost_unknown_calls", 0),
        )
        data = {"id": str(row.pk), **row.audit_data(), "deletion": str(deletion.pk)}
        if because:
            data["because"] = because
        AuditEntry.record(actor=actor, project=project, action=f"{label.split()[0]}.delete", subject=label, data=data)
        transaction.on_commit(lambda: send(deletion.pk))
    return deletion


def blockers_of(row: RemovableRow) -> list[Blocker]:
    return [*(_live_work(row) if isinstance(row, Run) else ()), *row.blockers()]


def _live_work(run: Run) -> Iterator[Blocker]:
    """A live run still writes, and any other may be reading the results of this one."""
    if run.state in LIVE:
        url = reverse("run-page", args=[run.project.slug, run.pk])
        yield Blocker("This run is in progress. Cancel it, then delete it.", url)
    if kind_of(run.kind).feeds_others:
        others = Run.objects.live().filter(project=run.project_id).exclude(pk=run.pk).count()
        one = "{} other run is in progress and may use its results. Wait, or cancel them."
        many = "{} other runs are in progress and may use its results. Wait, or cancel them."
        yield from run.blocked_by(others, one, "run-list", "?state=queued,running", plural=many)


def _require_scope(access: Access, row: RemovableRow) -> None:
    access.require(kind_of(row.kind).scope if isinstance(row, Run) else Scope.RUN)
