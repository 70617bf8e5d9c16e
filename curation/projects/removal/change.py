"""Archive, unarchive and delete a project."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from curation.projects.access import Access
from curation.projects.models import AuditEntry, Deletion, Project, Scope
from curation.projects.removal.carry_out import send
from curation.web.problems import Conflict, Invalid
from curation.web.text.figures import counted


def archive_project(*, access: Access, archived: bool) -> Project:
    """Make the project read-only and hide it, or undo that. Raises `Conflict` if it is so already, or while one of its
    runs is in progress."""
    access.require(Scope.ADMIN)
    with transaction.atomic():
        # The lock makes a launch wait, which then finds the project archived.
        project = Project.objects.select_for_update().get(pk=access.project.pk)
        if archived:
            project.require_writable()
            if live := project.runs.all().live().count():
                working = f"{counted(live, 'run')} {'is' if live == 1 else 'are'} in progress."
                raise Conflict(f"{working} Cancel or wait, then archive the project.", code="in_progress")
        elif project.archived_at is None:
            raise Conflict(f"The project {project.name} is not archived.", code="not_archived")
        project.archived_at, project.version = timezone.now() if archived else None, project.version + 1
        project.save(update_fields=["archived_at", "version"])
        action = "project.archive" if archived else "project.unarchive"
        access.record(action, project.slug)
    return project


def delete_project(*, access: Access, name: str) -> Deletion:
    """Begin to delete the project, which answers as deleted from now on.

    `name` is the project's name as the admin typed it; another one is `Invalid`.
    """
    access.require(Scope.ADMIN)
    with transaction.atomic():
        project = Project.objects.select_for_update().get(pk=access.project.pk)
        if name.strip() != project.name.strip():
            raise Invalid.at("name", f"Type the project's name, {project.name}, to delete it.", code="wrong_name")
        if project.deleting_at is not None:
            project.require_writable()
        project.deleting_at = timezone.now()
        project.save(update_fields=["deleting_at"])
        User.objects.filter(service_account__project=project).update(is_active=False)
        deletion = Deletion.objects.create(
            noun="project",
            target_id=project.pk,
            project_id=project.pk,
            label=f"project {project.name}",
            requested_by=access.user,
        )
        # Without a project: the entries of the project are deleted with it.
        data = {"id": str(project.pk), "name": project.name, "deletion": str(deletion.pk)}
        AuditEntry.record(actor=access.user, action="project.delete", subject=project.slug, data=data)
        transaction.on_commit(lambda: send(deletion.pk))
    return deletion
