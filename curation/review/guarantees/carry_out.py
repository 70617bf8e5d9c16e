"""Carry out a guarantee in batches: approve its samples, or give them back when it is withdrawn.

Each batch is a transaction that locks the guarantee, so that two workers never do the same one. The next call goes
on after a killed process.
"""

import time
from collections import Counter
from collections.abc import Callable

import numpy as np
from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Now

from curation.guarantees.models import Draw, Guarantee
from curation.review.decisions.approve import name_approved_texts
from curation.review.decisions.findings import flag_findings
from curation.review.decisions.state import emit_decided, fields_after, log_line
from curation.review.guarantees.proof import proof_of
from curation.review.guarantees.sets import HELD, Rows, not_held, unpacked
from curation.review.guarantees.withdraw import CHUNK, author_of, give_back, withdraw_guarantee
from curation.review.models import Action, Batch, Decision, Lease
from curation.samples.models import Sample, SampleStatus
from curation.web.ids import IdList
from judging.scan.scan import rule_set_version

# A request works so long itself, then workers go on.
REQUEST_SECONDS, WORKER_SECONDS = 5.0, 60.0


def carry_out(guarantee_id: int, *, seconds: float = WORKER_SECONDS) -> None:
    """Approve or give back batches until all is done or the time is over."""
    until, rows = time.monotonic() + seconds, None
    while time.monotonic() < until:
        with transaction.atomic():
            locked = Guarantee.objects.select_for_update(of=("self",)).select_related("project", "audit")
            guarantee = locked.get(pk=guarantee_id)
            if guarantee.finished or guarantee.project.deleting_at is not None:
                return
            if guarantee.withdrawn_at is not None:
                guarantee.finished = give_back(guarantee)
            else:
                rows = rows_above(guarantee) if rows is None else rows
                first = int(np.searchsorted(rows["id"], guarantee.cursor, side="right"))
                guarantee.finished = _approve(guarantee, rows[first : first + CHUNK])
                if guarantee.finished and not proof_of(guarantee.audit).holds(guarantee):
                    reason = "People decided or changed so many of its samples that nothing is proven about the others."
                    withdraw_guarantee(guarantee, by=None, reason=reason)
                    continue
            guarantee.save(update_fields=["finished", "cursor", "samples", "approved"])


def continue_all() -> None:
    for pk in Guarantee.objects.filter(finished=False).order_by("id").values_list("pk", flat=True):
        carry_out(pk)


def rows_above(guarantee: Guarantee) -> Rows:
    """The rows of the set from the guarantee's threshold on, in the order of the ids."""
    rows = unpacked(guarantee.audit.set.data)
    found: Rows = rows[rows["score"] >= guarantee.threshold]
    return found


def approvable(guarantee: Guarantee, rows: Rows) -> set[int]:
    """The ids of the rows whose samples are as they were in the set: pending, with no finding, changed by nobody, and
    drawn for people by no audit, also none of later.

    Lines of guarantees, which have been undone since, raised the version too.
    """
    ids = IdList(rows["id"].tolist())
    samples = not_held(Sample.objects.of(guarantee.project).filter(pk__in=ids, status=SampleStatus.PENDING, opinions=0))
    samples = samples.filter(~Exists(Draw.objects.offered().filter(sample=OuterRef("pk"))))
    lines = Decision.objects.filter(sample_id__in=ids, guarantee__isnull=False)
    raised = Counter(lines.filter(created_at__gt=guarantee.audit.created_at).values_list("sample_id", flat=True))
    leased = set(Lease.objects.filter(sample_id__in=ids, until__gt=Now()).values_list("sample_id", flat=True))
    versions = dict(zip(rows["id"].tolist(), rows["version"].tolist(), strict=True))
    now = samples.values_list("pk", "version")
    return {pk for pk, version in now if version == versions[pk] + raised[pk] and pk not in leased}


def _approve(guarantee: Guarantee, rows: Rows) -> bool:
    """Approve the samples of these rows, and return whether all are approved."""
    if not len(rows):
        guarantee.samples = guarantee.approved
        return True
    access, ids = author_of(guarantee), rows["id"].tolist()
    locked = list(Sample.objects.filter(pk__in=IdList(ids)).order_by("id").select_for_update(of=("self",)))
    as_they_were = approvable(guarantee, rows)
    samples = [sample for sample in locked if sample.pk in as_they_were]
    lines = [log_line(sample, access, Action.APPROVE, batch=guarantee.batch) for sample in samples]
    for line in lines:
        line.guarantee = guarantee
    if lines:
        name_approved_texts(lines)
    for line in lines:
        # The flags of a sample that was scanned under these rules are right: workers scan all that is pending.
        if not line.scan_rules and line.sample.scan_rules != rule_set_version():
            flag_findings(line.sample)
    lines = [line for line in lines if not line.sample.flags & HELD]
    Decision.objects.bulk_create(lines)
    # Nobody decided it: the list of samples that a person decided has none of them.
    fields = fields_after(Action.APPROVE, guarantee.created_by_id, leak=False) | {"decided_by_id": None}
    Sample.objects.filter(pk__in=IdList([line.sample_id for line in lines])).update(version=F("version") + 1, **fields)
    Batch.objects.filter(key=guarantee.batch).update(changed=F("changed") + len(lines))
    emit_decided(guarantee.project, lines)
    guarantee.cursor, guarantee.approved = ids[-1], guarantee.approved + len(lines)
    return False


def soon(guarantee_id: int) -> Callable[[], None]:
    """For `transaction.on_commit`: begin in this request; workers go on with the rest."""
    return lambda: carry_out(guarantee_id, seconds=REQUEST_SECONDS)
