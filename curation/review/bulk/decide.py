"""The same decision on many samples at once: a selection, or all that match a filter."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.urls import reverse
from pydantic import Field

from curation.notifications.notify import notify_mentioned
from curation.projects.access import Access
from curation.review.decisions.decide import refuse_wrong_input
from curation.review.decisions.findings import flag_findings
from curation.review.decisions.opinions import enter_opinion, notify_of_opinions
from curation.review.decisions.state import (
    change,
    emit_decided,
    fields_after,
    log_line,
    name_approved_texts,
    titles,
    unanswered,
)
from curation.review.models import STATUS_AFTER, Action, Batch, Decision, Lease
from curation.samples.blind import refuse_hidden
from curation.samples.list.filters import SampleFilter
from curation.samples.models import LEAKS, Sample, SampleStatus
from curation.samples.texts import scan_texts
from curation.web.ids import id_number
from curation.web.lists.filters import url_query
from curation.web.problems import Conflict, FieldError, Invalid
from curation.web.schemas import computed, out
from curation.web.text.figures import counted

CHUNK = 1_000
MAX_SELECTED = 500
MAX_MATCHING = 50_000


# One sample's new status and version, or why it was not changed.
@out
class BulkRow:
    id: str = Field(examples=["4711"])
    status: str | None = Field(default=None, examples=["approved"])
    version: int | None = Field(default=None, examples=[2])
    error: str | None = Field(default=None, examples=[None])

    @computed(examples=[True])
    def ok(self) -> bool:
        return self.error is None


@dataclass(frozen=True, slots=True)
class BulkDone:
    """`rows` has every sample of a selection and is empty for a filter. `refused` has the first few that were not
    changed, `unchanged` counts them all. `waiting` of the `changed` ones wait for the decisions of others. `batch` is
    empty where nothing was changed."""

    batch: str
    action: str
    changed: int
    waiting: int
    rows: tuple[BulkRow, ...]
    refused: tuple[BulkRow, ...]
    unchanged: int


def decide_selected(
    *, access: Access, action: str, ids: Sequence[str], reason: str = "", comment: str = ""
) -> BulkDone:
    """Decide up to 500 named samples in one transaction. Each row of the answer has the outcome for its sample."""
    refuse_wrong_input(action, STATUS_AFTER, reason, comment)
    if not ids or len(ids) > MAX_SELECTED:
        raise Invalid(f"Send 1 to {MAX_SELECTED} ids, not {len(ids)}.", errors=[FieldError("ids", "1 to 500 of them")])
    batch = secrets.token_hex(12)
    known = {given: pk for given in ids if (pk := id_number(given)) is not None}
    with transaction.atomic():
        done = {row.id: row for row in decide_chunk(access, action, list(known.values()), batch, reason, comment)}
        rows = tuple(
            done.get(str(known.get(given))) or BulkRow(given, error="There is no such sample.") for given in ids
        )
        return _finish(access, batch, action, rows, said=f"{reason}\n{comment}", keep_rows=True)


def decide_matching(*, access: Access, action: str, wanted: SampleFilter, expected: int, reason: str = "") -> BulkDone:
    """Decide every sample that matches, one transaction per 1,000 of them.

    `expected` is the number that the person confirmed; if another number matches now, nothing is changed. More than
    50,000 are refused. If the server dies in between, the written chunks stay and the batch can be undone.
    """
    refuse_wrong_input(action, STATUS_AFTER, reason, "")
    refuse_hidden(access, wanted)
    matching = wanted.apply(Sample.objects.of(access.project)).order_by()
    count = matching[: MAX_MATCHING + 1].count()
    if count > MAX_MATCHING:
        raise Invalid(
            f"More than {MAX_MATCHING:,} samples match. Narrow the filter and decide them in parts.", code="too_many"
        )
    if count != expected:
        raise Conflict(
            f"{counted(count, 'sample')} {'matches' if count == 1 else 'match'} now, not the {expected:,} that you "
            "confirmed. Nothing was changed.",
            code="count_changed",
            current={"count": count},
        )
    ids = list(matching.order_by("id").values_list("id", flat=True))
    batch = secrets.token_hex(12)
    rows: list[BulkRow] = []
    for start in range(0, len(ids), CHUNK):
        with transaction.atomic():
            rows += decide_chunk(access, action, ids[start : start + CHUNK], batch, reason, "", query=wanted.to_query())
    with transaction.atomic():
        return _finish(access, batch, action, tuple(rows), said=reason, keep_rows=False, query=wanted.to_query())


def decide_chunk(
    access: Access, action: str, ids: list[int], batch: str, reason: str, comment: str, *, query: str = ""
) -> list[BulkRow]:
    """Lock, log and change one chunk, in a transaction. Samples in review by others, with that status already, or
    to be approved without an answer to a required question, are refused."""
    samples = list(Sample.objects.of(access.project).filter(pk__in=ids).order_by("id").select_for_update(of=("self",)))
    leased = dict(
        Lease.objects.filter(sample_id__in=ids, until__gt=Now())
        .exclude(reviewer=access.user)
        .values_list("sample_id", "reviewer__username")
    )
    status = STATUS_AFTER[action]
    missing = unanswered(access.project, samples, [access.user]) if action == Action.APPROVE else {}
    rows, changing = list[BulkRow](), list[Sample]()
    for sample in samples:
        if sample.pk in leased:
            rows.append(BulkRow(str(sample.pk), error=f"The sample is in review by {leased[sample.pk]}."))
        elif sample.status == status:
            rows.append(BulkRow(str(sample.pk), error=f"The sample is already {sample.get_status_display().lower()}."))
        elif sample.pk in missing:
            rows.append(BulkRow(str(sample.pk), error=f"You have not answered: {titles(missing[sample.pk])}."))
        else:
            changing.append(sample)
            rows.append(BulkRow(str(sample.pk), status, sample.version + 1))
    lines = [log_line(sample, access, action, reason=reason, comment=comment, batch=batch) for sample in changing]
    if action == Action.APPROVE:
        name_approved_texts(lines)
    lines, several = _enter_opinions(lines, access, rows)
    if not lines:
        return rows
    values = {"project": access.project, "reviewer": access.user, "action": action, "reason": reason, "query": query}
    row, _ = Batch.objects.get_or_create(key=batch, defaults=values)
    Decision.objects.bulk_create(lines)
    Batch.objects.filter(pk=row.pk).update(changed=F("changed") + len(lines))
    for leak in (False, True):
        settled = [line.sample for line in lines if line.settles and bool(line.sample.flags & LEAKS) is leak]
        fields = fields_after(action, access.user.pk, leak=leak)
        pks = [sample.pk for sample in settled if sample.pk not in several]
        if pks:
            Sample.objects.filter(pk__in=pks).update(version=F("version") + 1, **fields)
        for sample in settled:
            if sample.pk in several:
                change(sample, **fields, **several[sample.pk])
    for line in lines:
        if line.settles and line.sample_id in several and action != Action.QUEUE:
            notify_of_opinions(access, line.sample, before=line)
    noted = bool(scan_texts([reason, comment]))
    for line in lines:
        if noted or (action == Action.APPROVE and not line.scan_rules):
            flag_findings(line.sample)
    Lease.objects.filter(sample_id__in=[line.sample_id for line in lines]).delete()
    emit_decided(access.project, lines)
    return rows


def _enter_opinions(
    lines: list[Decision], access: Access, rows: list[BulkRow]
) -> tuple[list[Decision], dict[int, dict[str, object]]]:
    """Return the accepted lines, and further changes to samples that several people decide. `rows` then name the
    samples that wait for others, and the reasons of refused lines."""
    review = access.project.settings.review
    entered, fields, places = (
        list[Decision](),
        dict[int, dict[str, object]](),
        {row.id: n for n, row in enumerate(rows)},
    )
    for line in lines:
        sample = line.sample
        try:
            found = enter_opinion(line, access, review)
        except Conflict as problem:
            rows[places[str(sample.pk)]] = BulkRow(str(sample.pk), error=problem.detail)
            continue
        entered.append(line)
        if found:
            fields[sample.pk] = found
        if not line.settles:
            rows[places[str(sample.pk)]] = BulkRow(str(sample.pk), sample.status, sample.version)
    return entered, fields


def _finish(
    access: Access,
    batch: str,
    action: str,
    rows: tuple[BulkRow, ...],
    *,
    said: str,
    keep_rows: bool,
    query: str = "",
) -> BulkDone:
    by_id = {row.id: row for row in rows}  # a selection may name a sample twice
    refused = tuple(row for row in by_id.values() if row.error)
    changed = len(by_id) - len(refused)
    undecided = sum(row.status == SampleStatus.PENDING for row in by_id.values())
    waiting = undecided if action != Action.QUEUE else 0
    if changed:
        access.record(f"sample.bulk_{action}", batch, {"changed": changed, "refused": len(refused), "query": query})
        # Reviewers see no batches of others, but the samples that the caller decided.
        of = "" if action == Action.QUEUE else f"?{url_query([('reviewer', access.user.get_username())])}"
        link, about = reverse("sample-list", args=[access.project.slug]) + of, counted(changed, "sample")
        # A remark on decisions that wait would tell of them.
        notify_mentioned(access=access, text="" if waiting else said, about=f"{about} decided at once", link=link)
    shown = rows if keep_rows else ()
    return BulkDone(batch if changed else "", action, changed, waiting, shown, refused[:20], len(refused))
