"""Write the audit log, in the transaction of the change itself."""

from collections.abc import Mapping

from django.contrib.auth.models import User

from curation.projects.models import AuditEntry, Project


def record(
    *,
    actor: User | None,
    action: str,
    subject: str = "",
    project: Project | None = None,
    data: Mapping[str, object] | None = None,
) -> None:
    """Add one entry; `actor` is None for changes by the system. Never put secrets into `data`."""
    AuditEntry.objects.create(actor=actor, action=action, subject=subject[:200], project=project, data=dict(data or {}))
