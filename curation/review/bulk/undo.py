"""The bulk actions of a project, and their undo."""

from collections import defaultdict
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Now

from curation.projects.access import Access
from curation.projects.models import Scope
from curation.review.decisions.opinions import withdraw_opinion, withdraw_revision
from curation.review.decisions.outcome import standing_approvals
from curation.review.decisions.state import change, emit_decided, restored
from curation.review.decisions.undo import NOT_DECIDING, undo_line
from curation.review.models import Action, Batch, Decision, Lease, Revision
from curation.samples.models import Sample
from curation.web.lists.filters import ListParams, named_list
from curation.web.problems import Conflict, NotFound
from curation.web.text.figures import counted

CHUNK = 1_000


named_list("batches", page="batch-list")(ListParams)


def batches_of(access: Access) -> QuerySet[Batch]:
    """The project's bulk actions. People who only review see their own."""
    rows = Batch.objects.filter(project=access.project).select_related("reviewer")
    return rows if access.may(Scope.RUN) else rows.filter(reviewer=access.user)


@dataclass(frozen=True, slots=True)
class BulkUndone:
    """How many samples have their earlier state again; `kept` has the ids of the others, each with the reason."""

    action: str
    restored: int
    kept: tuple[tuple[int, str], ...]

    @property
    def summary(self) -> str:
        kept = f" Not restored, because it has changed since: {counted(len(self.kept), 'sample')}." if self.kept else ""
        return f"Restored {counted(self.restored, 'sample')}.{kept}"


def undo_bulk(*, access: Access, batch: str) -> BulkUndone:
    """Undo every decision of the caller's batch that is not undone yet, in chunks of 1,000.

    Samples that another reviewer has open, or that were decided or revised since, are kept as they are and named. A
    second call continues with the rest.
    """
    rows = Decision.objects.filter(sample__project=access.project, reviewer=access.user, batch=batch).not_undone()
    rows = rows.exclude(batch="").exclude(action__in=(Action.UNDO, Action.REOPEN))
    found = list(rows.order_by("id").values_list("id", "action"))
    if (guarantee := rows.filter(guarantee__isnull=False).values_list("guarantee", flat=True).first()) is not None:
        raise Conflict(f"Withdraw guarantee {guarantee} to undo its approvals.", code="under_guarantee")
    ids = [pk for pk, _ in found]
    if not ids:
        raise NotFound(f"There is no bulk action {batch!r} of yours that can be undone.")
    restored_count, kept = 0, dict[int, str]()
    for start in range(0, len(ids), CHUNK):
        with transaction.atomic():
            count, refused = _undo_chunk(access, batch, ids[start : start + CHUNK])
            Batch.objects.filter(key=batch).update(restored=F("restored") + count)
            restored_count += count
            kept |= refused
    if restored_count:
        access.record("sample.bulk_undo", batch, {"restored": restored_count, "kept": len(kept)})
    return BulkUndone(found[0][1], restored_count, tuple(kept.items()))


def _undo_chunk(access: Access, batch: str, ids: list[int]) -> tuple[int, dict[int, str]]:
    sample_ids = list(Decision.objects.filter(pk__in=ids).values_list("sample_id", flat=True))
    rows = Sample.objects.of(access.project).filter(pk__in=sample_ids).order_by("id").select_for_update(of=("self",))
    samples = {sample.pk: sample for sample in rows}
    # Read again under the locks: one of them may have been undone in between.
    decisions = {row.sample_id: row for row in Decision.objects.filter(pk__in=ids).not_undone().order_by("id")}
    refused = _refusals(access, decisions)
    taken = {pk: row for pk, row in decisions.items() if pk not in refused}
    lines = Decision.objects.bulk_create([undo_line(row, samples[pk], access) for pk, row in taken.items()])
    line = Decision.objects.filter(sample=OuterRef("sample"), batch=batch, action=Action.UNDO).order_by("-id")
    Decision.objects.filter(pk__in=[row.pk for row in taken.values()]).update(undone_by=Subquery(line.values("id")[:1]))
    _restore({pk: row for pk, row in taken.items() if row.settles and "round" not in row.before})
    for pk, row in taken.items():
        if not row.settles:
            withdraw_opinion(samples[pk])
        elif "round" in row.before:
            withdraw_revision(row)
            change(samples[pk], **restored(row.before, approved=False))
    emit_decided(access.project, lines)
    return len(taken), refused


def _refusals(access: Access, decisions: dict[int, Decision]) -> dict[int, str]:
    """Reasons to keep samples, by id; three queries for the chunk."""
    refused = {}
    leases = Lease.objects.filter(sample_id__in=decisions, until__gt=Now()).exclude(reviewer=access.user)
    for pk, name in leases.values_list("sample_id", "reviewer__username"):
        refused[pk] = f"The sample is in review by {name}."
    revisions = Revision.objects.filter(sample_id__in=decisions, private_to=None).not_undone()
    revisions = revisions.exclude(author=access.user)
    for revision in revisions.select_related("author").defer("text"):
        if revision.created_at > decisions[revision.sample_id].created_at:
            refused[revision.sample_id] = f"{revision.written_by} has revised it since."
    later = Decision.objects.filter(sample_id__in=decisions).not_undone()
    later = later.exclude(action__in=NOT_DECIDING).exclude(settles=False)
    for pk, row, name in later.values_list("sample_id", "id", "reviewer__username"):
        if row > decisions[pk].pk:
            refused[pk] = f"{name} has decided it since."
    return refused


def _restore(taken: dict[int, Decision]) -> None:
    """One UPDATE per distinct earlier state: a bulk action is made on samples that are alike."""
    approved = standing_approvals(list(taken))
    alike: dict[tuple[str, int | None, str | None, bool, bool], list[int]] = defaultdict(list)
    for pk, row in taken.items():
        state = (row.before[name] for name in ("status", "decided_by", "decided_at", "leak_cleared"))
        alike[(*state, pk in approved)].append(pk)
    for pks in alike.values():
        fields = restored(taken[pks[0]].before, approved=pks[0] in approved)
        Sample.objects.filter(pk__in=pks).update(version=F("version") + 1, **fields)
