"""Draw an audit: a simple random sample of the pending samples of a filter, for people to look at."""

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
from django.db import transaction

from curation.guarantees.models import Audit, AuditSet, Draw
from curation.labels.models import Question
from curation.projects.access import Access
from curation.projects.models import AuditEntry, Project, Scope
from curation.review.decisions.state import log_line, name_approved_texts
from curation.review.guarantees.sets import (
    Rows,
    SetRows,
    drawn_from,
    find_set,
    names_of_clusters,
    packed,
    set_sha256,
    unpacked,
)
from curation.review.models import Action
from curation.samples.list.filters import SampleFilter
from curation.samples.models import Sample
from curation.samples.scores import NO_MODEL, PREDICTED
from curation.web.ids import lock_row
from curation.web.problems import Conflict, FieldError, Invalid
from curation.web.text.figures import counted
from judging.statistics.guarantee import enough_looks, least_looks, thresholds_of

MAX_SIZE = 5_000


def draw_audit(access: Access, audit: Audit) -> None:
    """Find the set of a new audit, whose settings are given, draw its samples and save all of it.

    Raises `Invalid` or `Conflict` where nothing could ever be proven: no pending samples, none with the score, too few
    looks or clusters.
    """
    refuse_questions(access.project)
    wanted = SampleFilter.from_json(audit.filter)
    # A million samples take seconds to read, during which no writer waits.
    found = find_set(wanted.apply(Sample.objects.of(access.project)), audit.score, audit.cluster)
    _refuse_empty(audit, found)
    _refuse_too_small(audit, found)
    audit.seed, audit.drawn = secrets.randbits(62), audit.size
    audit.samples, audit.left_out = len(found.rows), found.left_out
    audit.set_sha256 = set_sha256(found.rows)
    thresholds, counts = thresholds_of(found.rows["score"])
    audit.levels = [[float(one), int(count)] for one, count in zip(thresholds, counts, strict=True)]
    audit.spent = _spent_before(audit, found.rows)
    with transaction.atomic():
        audit.save()
        AuditSet.objects.create(audit=audit, data=packed(found.rows))
        # Those of extensions too, before anybody can change their text.
        write_draws(access, audit, drawn_from(found.rows, audit.size * (1 + audit.extensions), audit.seed))
        names = ("filter", "score", "size", "extensions", "alpha", "delta", "cluster", "set_sha256")
        access.record("audit.create", str(audit), {name: getattr(audit, name) for name in names})


def write_draws(access: Access, audit: Audit, drawn: Rows, **values: Any) -> None:
    """Write the draws in their order, each with the approval that a guarantee would write for the sample."""
    ids = [int(pk) for pk in drawn["id"]]
    samples = Sample.objects.in_bulk(ids)
    lines = {pk: log_line(sample, access, Action.APPROVE) for pk, sample in samples.items()}
    if lines:
        name_approved_texts(list(lines.values()))
    clusters = names_of_clusters(audit.cluster, ids) if audit.cluster else {}
    rows = [
        Draw(
            audit=audit,
            sample_id=pk if pk in lines else None,  # deleted since the set was read
            place=place,
            score=float(row["score"]),
            cluster=clusters.get(pk, ""),
            pick=lines[pk].pick if pk in lines else "",
            text_sha256=lines[pk].text_sha256 if pk in lines else "",
            **values,
        )
        for place, (pk, row) in enumerate(zip(ids, drawn, strict=True))
    ]
    Draw.objects.bulk_create(rows)


def extend_audit(access: Access, audit: Audit) -> None:
    """Give people the next looks of the draw. Raises `Conflict` where no extension was planned or is left, and where a
    guarantee stands on the audit."""
    access.require(Scope.RUN)
    with transaction.atomic():
        now = lock_row(audit, "audit")
        if now.guarantees.filter(withdrawn_at=None).exists():
            raise Conflict("A guarantee stands on this audit. Withdraw it first.", code="has_guarantee")
        if now.drawn >= now.size * (1 + now.extensions):
            raise Conflict(
                f"The audit was drawn with {counted(now.extensions, 'extension')}, and none is left. Their number is a "
                "part of the proof, so it cannot change. Draw another audit.",
                code="no_extension",
            )
        audit.drawn = now.drawn + now.size
        Audit.objects.filter(pk=audit.pk).update(drawn=audit.drawn)
        access.record("audit.extend", str(audit), {"drawn": audit.drawn})


def _spent_before(audit: Audit, rows: Rows) -> float:
    """Return the sum of δ of audits that drew from samples of this set before; of deleted ones, those of its filter."""
    earlier = Audit.objects.filter(project=audit.project).select_related("set")
    shared = [one.delta for one in earlier if np.isin(unpacked(one.set.data)["id"], rows["id"]).any()]
    entries = AuditEntry.objects.filter(project=audit.project, action="audit.create")
    deleted = entries.exclude(subject__in=[str(one) for one in earlier]).values_list("data", flat=True)
    return sum(shared) + sum(float(data["delta"]) for data in deleted if data.get("filter") == audit.filter)


def refuse_questions(project: Project) -> None:
    required = Question.objects.filter(project=project, archived_at=None, required=True).values_list("title", flat=True)
    if titles := ", ".join(required):
        raise Conflict(
            f"The project requires an answer before an approval ({titles}), which nobody gives unseen. Make the "
            "question optional first.",
            code="labels_required",
        )


def _refuse_empty(audit: Audit, found: SetRows) -> None:
    if len(found.rows):
        return
    left_out = found.left_out
    if not sum(left_out.values()):
        raise Conflict("No pending sample matches the filter, so there is nothing to audit.", code="no_pending_samples")
    if left_out["unscored"] and audit.score == PREDICTED:
        raise Invalid(NO_MODEL, code="no_model", errors=[FieldError("score", "no model of decisions was fitted")])
    raise Invalid(
        f"No guarantee could approve any of the {counted(sum(left_out.values()), 'pending sample')}: "
        f"{_words(left_out, audit.score)}.",
        code="no_scored_samples",
        errors=[FieldError("score", f"{left_out['unscored']} pending samples do not have it")],
    )


def _refuse_too_small(audit: Audit, found: SetRows) -> None:
    total = len(found.rows)
    needed = least_looks(total, audit.alpha, audit.delta_of_test)
    promise = f"α = {audit.alpha:g} and δ = {audit.delta:g}"
    if needed is None:
        text = f"is more than a set of {total} allows to prove {promise}: looking at nearly all of it is reviewing it"
    elif audit.size < needed:
        large = enough_looks(audit.alpha, audit.delta_of_test)
        text = (
            f"is too small to prove {promise} even without an error: it takes {needed} looks in this set of {total}, "
            f"{large} in a large one"
        )
    elif audit.size * (1 + audit.extensions) >= total:
        text = f"leaves nothing to approve: the set has {counted(total, 'sample')}"
    else:
        _refuse_few_clusters(audit, found)
        return
    error = FieldError("size", text)
    current: dict[str, object] = {"needed": needed, "samples": total}
    raise Invalid(f"The audit's size of {audit.size} {text}.", code="size", errors=[error], current=current)


def _refuse_few_clusters(audit: Audit, found: SetRows) -> None:
    if not audit.cluster:
        return
    needed = enough_looks(audit.alpha, audit.delta_of_test)
    if found.clusters < needed:
        text = (
            f"has {found.clusters} different values in the set, and it takes {needed} to prove α = {audit.alpha:g} and "
            f"δ = {audit.delta:g} with one look at each"
        )
        raise Invalid(f"The cluster {audit.cluster} {text}.", code="clusters", errors=[FieldError("cluster", text)])


def _words(left_out: dict[str, int], score: str) -> str:
    words: Sequence[tuple[str, str]] = (
        ("unscored", f"without {score}"),
        ("held", "held by a finding"),
        ("begun", "begun by people"),
    )
    return ", ".join(f"{left_out[name]} {text}" for name, text in words if left_out[name])
