"""The audit log is written where the change is made, in the change's own transaction."""

from django.contrib.auth.models import User

from curation.projects.models import AuditEntry, Project


def record(
    *,
    actor: User | None,
    action: str,
    subject: str = "",
    project: Project | None = None,
    data: dict[str, object] | None = None,
) -> None:
    """Adds one entry; `actor` is None for what the system does by itself. Never put secrets into `data`."""
    AuditEntry.objects.create(actor=actor, action=action, subject=subject[:200], project=project, data=data or {})
