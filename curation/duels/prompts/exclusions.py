"""Exclusions: instances whose prompts runs skip, with a reason that people can edit."""

from collections.abc import Mapping, Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from pydantic import Field

from curation.duels.models import Exclusion
from curation.projects.models import AuditEntry, Project
from curation.web.problems import FieldError, Invalid, NotFound
from curation.web.schemas import out
from curation.web.text.figures import counted

MAX_AT_ONCE = 500
OVERSIZED = "oversized pull request"


@out
class OutcomeOut:
    """The outcome of one row: `added`, `changed` or `unchanged`."""

    instance_id: str
    outcome: str = Field(examples=["added"], description="added, changed or unchanged")


def exclude(*, project: Project, rows: Sequence[tuple[str, str]], user: User) -> list[OutcomeOut]:
    """Exclude instances, given as (id, reason). An excluded one gets the new reason. All rows are saved or none."""
    _check(rows)
    results = []
    with transaction.atomic():
        existing = {row.instance_id: row for row in _of(project, [instance_id for instance_id, _ in rows])}
        for instance_id, reason in rows:
            row = existing.get(instance_id)
            if row is None:
                existing[instance_id] = Exclusion.objects.create(
                    project=project, instance_id=instance_id, reason=reason, created_by=user
                )
                outcome = "added"
            elif row.reason != reason:
                row.reason, row.created_by = reason, user
                row.save(update_fields=["reason", "created_by"])
                outcome = "changed"
            else:
                outcome = "unchanged"
            results.append(OutcomeOut(instance_id, outcome))
        AuditEntry.record(
            actor=user,
            project=project,
            action="exclusion.set",
            subject=_subject([instance_id for instance_id, _ in rows]),
            data={"exclusions": dict(rows)},
        )
    return results


def include(*, project: Project, instance_ids: Sequence[str], user: User) -> int:
    """Delete exclusions and return their number. Raises `NotFound` if none of the instances is excluded."""
    if len(instance_ids) > MAX_AT_ONCE:
        raise Invalid(f"At most {MAX_AT_ONCE} instances at once.", code="too_many_rows")
    with transaction.atomic():
        existing = {row.instance_id: row.reason for row in _of(project, instance_ids)}
        if not existing:
            raise NotFound("None of these instances is excluded.")
        _of(project, list(existing)).delete()
        AuditEntry.record(
            actor=user,
            project=project,
            action="exclusion.remove",
            subject=_subject(list(existing)),
            data={"exclusions": existing},
        )
    return len(existing)


def exclude_oversized(project: Project, tokens: Mapping[str, int]) -> int:
    """Exclude instances whose patch is over the project's limit, and return their number. Delete exclusions for size
    whose patch now fits. Exclusions by people stay."""
    limit = project.settings.limits.max_patch_tokens
    large = {instance_id: count for instance_id, count in tokens.items() if count > limit}
    fitting = [instance_id for instance_id in tokens if instance_id not in large]
    rows = [
        Exclusion(project=project, instance_id=instance_id, reason=f"{OVERSIZED} ({counted(count, 'token')})")
        for instance_id, count in large.items()
    ]
    Exclusion.objects.bulk_create(rows, ignore_conflicts=True)
    for start in range(0, len(fitting), MAX_AT_ONCE):
        stale = _of(project, fitting[start : start + MAX_AT_ONCE])
        stale.filter(created_by=None, reason__startswith=OVERSIZED).delete()
    return len(large)


def _check(rows: Sequence[tuple[str, str]]) -> None:
    if not rows:
        raise Invalid("Name at least one instance.")
    if len(rows) > MAX_AT_ONCE:
        raise Invalid(f"At most {MAX_AT_ONCE} instances at once.", code="too_many_rows")
    errors = []
    for index, (instance_id, reason) in enumerate(rows):
        for field, value in (("instance_id", instance_id), ("reason", reason)):
            if not value.strip() or len(value) > 200 or "\x00" in value:
                errors.append(FieldError(f"exclusions.{index}.{field}", "1 to 200 characters are needed"))
    if errors:
        raise Invalid.fields(errors)


def _of(project: Project, instance_ids: Sequence[str]) -> "QuerySet[Exclusion]":
    return Exclusion.objects.filter(project=project, instance_id__in=list(instance_ids))


def _subject(instance_ids: Sequence[str]) -> str:
    return instance_ids[0] if len(instance_ids) == 1 else counted(len(instance_ids), "instance")
