"""Approve the samples that an audit proves."""

import math
import secrets

import numpy as np
from django.db import transaction

from curation.guarantees.models import Audit, Guarantee
from curation.projects.access import Access
from curation.projects.models import Scope
from curation.review.guarantees.carry_out import approvable, rows_above, soon
from curation.review.guarantees.draw import write_draws
from curation.review.guarantees.proof import proof_of
from curation.review.guarantees.sets import Rows
from curation.review.models import Action, Batch
from curation.web.problems import Conflict
from curation.web.text.figures import counted

_AT_ONCE = 10_000


def approve_unseen(access: Access, audit: Audit, *, keep_alive: float = 0.0) -> Guarantee:
    """Start to approve the unseen samples of the loosest threshold that the audit proves.

    The share `keep_alive` of them stays pending for people. Raises `Conflict` where nothing is proven, where the audit
    has a guarantee that is not withdrawn, and where people have changed so many of the samples since that the promise
    about the others is not proven.
    """
    access.require(Scope.RUN)
    with transaction.atomic():
        Audit.objects.select_for_update().get(pk=audit.pk)
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
        kept = _kept(rows, keep_alive)
        guarantee.samples, guarantee.kept = len(rows) - len(kept), len(kept)
        if not guarantee.samples or not proof.holds(guarantee):
            raise Conflict(
                f"Of the {counted(level.unseen, 'sample')} that the audit is about, {len(rows)} are as they were: "
                "people have decided or changed the others. About so few nothing is proven. Draw a new audit.",
                code="changed_since",
            )
        guarantee.save()
        write_draws(access, audit, kept, guarantee=guarantee)
        values = {"reviewer": access.user, "action": Action.APPROVE, "reason": f"guarantee {guarantee.pk}"}
        Batch.objects.create(project=access.project, key=guarantee.batch, **values)
        data = {"audit": str(audit.pk), "threshold": level.threshold, "samples": guarantee.samples}
        proven = {"alpha": audit.alpha, "delta": audit.delta, "set_sha256": audit.set_sha256}
        access.record("guarantee.create", str(guarantee.pk), data | proven)
        transaction.on_commit(soon(guarantee.pk))
    return guarantee


def _rows_to_approve(guarantee: Guarantee) -> Rows:
    """The rows of the set that could be approved now, in the order of their ids."""
    rows = rows_above(guarantee)
    parts = range(0, len(rows), _AT_ONCE)
    found = {pk for start in parts for pk in approvable(guarantee, rows[start : start + _AT_ONCE])}
    kept: Rows = rows[np.isin(rows["id"], list(found))]
    return kept


def _kept(rows: Rows, share: float) -> Rows:
    """A random part of the rows, in the order of the draw; at least one if the share is not 0."""
    size = math.ceil(share * len(rows))
    return rows[np.random.default_rng().permutation(len(rows))[:size]]
