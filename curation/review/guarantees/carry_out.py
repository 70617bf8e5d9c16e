"""Start a guarantee on what an audit proves, and carry it out in batches: approve its samples, or give them back when
it is withdrawn. After each decision on a drawn sample the guarantee is checked again.

Each batch is a transaction that locks the guarantee, so that two workers never do the same one. The next call goes
on after a killed process.
"""

import math
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Now
from django.dispatch import receiver

from curation.guarantees.models import Audit, Draw, Guarantee
from curation.projects.access import Access
from curation.projects.models import Scope
from curation.review.decisions.findings import flag_findings
from curation.review.decisions.state import decided, emit_decided, fields_after, log_line, name_approved_texts
from curation.review.guarantees.draw import refuse_questions, write_draws
from curation.review.guarantees.proof import alive_of, proof_of
from curation.review.guarantees.sets import HELD, Rows, not_held, unpacked
from curation.review.guarantees.withdraw import CHUNK, author_of, give_back, withdraw_guarantee
from curation.review.models import Action, Batch, Decision, Lease
from curation.samples.models import Sample, SampleStatus
from curation.web.ids import IdList, lock_row
from curation.web.problems import Conflict
from curation.web.text.figures import counted
from judging.scan.scan import rule_set_version

_AT_ONCE = 10_000


def approve_unseen(access: Access, audit: Audit, *, keep_alive: float = 0.0) -> Guarantee:
    """Start to approve the unseen samples of the loosest threshold that the audit proves.

    The share `keep_alive` of them stays pending for people. Raises `Conflict` where nothing is proven, where the audit
    has a guarantee that is not withdrawn, where an approval needs answers to questions, and where people have changed
    so many of the samples since that the promise about the others is not proven.
    """
    access.require(Scope.RUN)
    refuse_questions(access.project)
    with transaction.atomic():
        lock_row(audit, "audit")
        standing = Guarantee.objects.filter(audit=audit, withdrawn_at=None).first()
        if standing is not None:
            raise Conflict(f"Guarantee {standing.pk} stands on this audit. Withdraw it first.", code="has_guarantee")
        proof = proof_of(audit)
        level = proof.proven
        if level is None:
            raise Conflict(f"The audit proves nothing yet. {proof.why_not}", code="not_proven")
        guarantee = Guarantee(
            project=access.project,
            audit=audit,
            created_by=access.user,
            threshold=level.threshold,
            keep_alive=keep_alive,
            batch=secrets.token_hex(12),
        )
        rows = _rows_to_approve(guarantee)
        kept = _random_part(rows, keep_alive)
        guarantee.samples, guarantee.kept = len(rows) - len(kept), len(kept)
        if not guarantee.samples or not proof.holds(guarantee):
            raise _too_few(level.unseen, len(rows), guarantee)
        guarantee.save()
        write_draws(access, audit, kept, guarantee=guarantee)
        values = {"reviewer": access.user, "action": Action.APPROVE, "reason": f"guarantee {guarantee.pk}"}
        Batch.objects.create(project=access.project, key=guarantee.batch, **values)
        data = {"audit": str(audit.pk), "threshold": level.threshold, "samples": guarantee.samples}
        proven = {"alpha": audit.alpha, "delta": audit.delta, "set_sha256": audit.set_sha256}
        access.record("guarantee.create", str(guarantee.pk), data | proven)
        transaction.on_commit(soon(guarantee.pk))
    return guarantee


def _too_few(unseen: int, found: int, guarantee: Guarantee) -> Conflict:
    """Return the refusal to approve so few of the unseen samples that nothing is proven about them."""
    missing = [f"people have decided or changed {unseen - found}"] if found < unseen else []
    missing += [f"{guarantee.kept} stay pending for people"] if guarantee.kept else []
    return Conflict(
        f"Of the {counted(unseen, 'sample')} that the audit is about, {' and '.join(missing)}. About the other "
        f"{guarantee.samples} nothing is proven. Draw a new audit{' or keep fewer' if guarantee.kept else ''}.",
        code="changed_since" if found < unseen else "not_proven",
    )


def _rows_to_approve(guarantee: Guarantee) -> Rows:
    """The rows of the set that could be approved now, in the order of their ids."""
    rows = rows_above(guarantee)
    parts = range(0, len(rows), _AT_ONCE)
    found = {pk for start in parts for pk in approvable(guarantee, rows[start : start + _AT_ONCE])}
    kept: Rows = rows[np.isin(rows["id"], list(found))]
    return kept


def _random_part(rows: Rows, share: float) -> Rows:
    """A random part of the rows, in the order of the draw; at least one if the share is not 0."""
    size = math.ceil(share * len(rows))
    return rows[np.random.default_rng().permutation(len(rows))[:size]]


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


@receiver(decided)
def recheck(lines: Sequence[Decision], **kwargs: Any) -> None:
    """Withdraw the guarantees that the changed looks no longer prove. In the transaction of the decisions."""
    ids = [line.sample_id for line in lines if line.guarantee_id is None]
    standing = Guarantee.objects.filter(withdrawn_at=None, audit__draws__sample_id__in=IdList(ids)).distinct()
    for guarantee in standing.select_related("project", "audit"):
        reason = _failure(guarantee)
        if reason and withdraw_guarantee(guarantee, by=None, reason=reason):
            transaction.on_commit(soon(guarantee.pk))


def _failure(guarantee: Guarantee) -> str:
    """Why the guarantee no longer holds; empty if it does."""
    if not proof_of(guarantee.audit).holds(guarantee):
        return "The looks of its audit no longer prove it: a decision on an audited sample was changed or undone."
    alive, alpha = alive_of(guarantee), guarantee.audit.alpha
    if alive.has_failed:
        return f"{alive.errors} errors among {alive.looked} samples that it kept for people: more than α = {alpha:g}."
    return ""
