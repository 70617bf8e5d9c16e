"""The part of a sample that decisions change: read before, restored by an undo, and refused when it has moved on."""

from typing import TypedDict

from django.utils.dateparse import parse_datetime

from curation.projects.models import Project
from curation.samples.models import Sample
from curation.web.prepared import Prepared
from curation.web.problems import NotFound, Stale


class Before(TypedDict):
    """`Decision.before`: what an undo puts back. Times are ISO 8601."""

    status: str
    decided_by: int | None
    decided_at: str | None
    leak_cleared: bool


def before_of(sample: Sample) -> Before:
    return {
        "status": sample.status,
        "decided_by": sample.decided_by_id,
        "decided_at": sample.decided_at.isoformat() if sample.decided_at else None,
        "leak_cleared": sample.leak_cleared,
    }


def restored(before: Before) -> dict[str, object]:
    """The fields of an update that puts `before` back."""
    at = before["decided_at"]
    return {
        "status": before["status"],
        "decided_by_id": before["decided_by"],
        "decided_at": parse_datetime(at) if at else None,
        "leak_cleared": before["leak_cleared"],
    }


def lock_sample(project: Project, sample_id: int) -> Sample:
    """The sample, locked until the transaction ends (on SQLite the transaction itself is the lock)."""
    found = _locked.first(project=project.pk, sample=sample_id)
    if found is None:
        raise NotFound(f"There is no sample {sample_id} in {project.slug}.")
    return found


_locked = Prepared(
    lambda project, sample: Sample.objects.filter(project=project, pk=sample).select_for_update(of=("self",))[:1],
    project=int,
    sample=int,
)


def change(sample: Sample, **fields: object) -> None:
    """Writes the fields and the next version where the sample still has the version that was read."""
    changed = Sample.objects.filter(pk=sample.pk, version=sample.version).update(version=sample.version + 1, **fields)
    if not changed:
        raise stale(sample, given=sample.version)
    sample.version += 1
    for name, value in fields.items():
        setattr(sample, name, value)


def refuse_stale_version(sample: Sample, version: int | None) -> None:
    if version is not None and version != sample.version:
        raise stale(sample, given=version)


def stale(sample: Sample, *, given: int) -> Stale:
    """Says what the caller did not know of: the version and status now, and who decided when."""
    by = sample.decided_by.get_username() if sample.decided_by else None
    at = sample.decided_at.isoformat() if sample.decided_at else None
    who = f", decided by {by}" if by else ""
    return Stale(
        f"Sample {sample.pk} has changed since you read it: you saw version {given}, now it is version "
        f"{sample.version}, {sample.get_status_display().lower()}{who}. Nothing was overwritten.",
        current={"version": sample.version, "status": sample.status, "decided_by": by, "decided_at": at},
    )
