"""The same decision on many samples at once: a selection, or all that match a filter."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from curation.projects import audit
from curation.projects.access import Access
from curation.review.decisions.decide import MAX_COMMENT, STATUS_AFTER
from curation.review.decisions.state import before_of
from curation.review.decisions.words import wrong_text
from curation.review.models import Action, Decision, Lease, Pick
from curation.review.queue.take import Narrow
from curation.samples.models import Flag, Kind, Sample
from curation.web.problems import Conflict, FieldError, Invalid

CHUNK = 1_000
MAX_SELECTED = 500
MAX_MATCHING = 50_000
ACTIONS = (Action.APPROVE, Action.REJECT, Action.REFINE, Action.QUEUE)


@dataclass(frozen=True, slots=True)
class Row:
    """What happened to one sample: its new status and version, or why it was left alone."""

    sample_id: str
    status: str = ""
    version: int = 0
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class BulkDone:
    """`rows` answers per sample for a selection and is empty for a filter, where `refused` lists the first few."""

    batch: str
    action: str
    changed: int
    rows: tuple[Row, ...]
    refused: tuple[Row, ...]
    left_alone: int = 0


def decide_selected(
    *, access: Access, action: str, ids: Sequence[str], reason: str = "", comment: str = ""
) -> BulkDone:
    """The action on up to 500 named samples, in one transaction. What can not be changed is answered per row."""
    _check(action, reason, comment)
    if not ids or len(ids) > MAX_SELECTED:
        raise Invalid(f"Send 1 to {MAX_SELECTED} ids, not {len(ids)}.", errors=[FieldError("ids", "1 to 500 of them")])
    batch = secrets.token_hex(12)
    known = {
        given: int(given) for given in dict.fromkeys(ids) if given.isascii() and given.isdigit() and len(given) < 19
    }
    with transaction.atomic():
        done = {row.sample_id: row for row in _chunk(access, action, list(known.values()), batch, reason, comment)}
        rows = tuple(done.get(str(known.get(given))) or Row(given, refusal="There is no such sample.") for given in ids)
        return _finish(access, batch, action, rows, keep_rows=True)


def decide_matching(
    *, access: Access, action: str, narrow: Narrow, expected: int, query: str = "", reason: str = ""
) -> BulkDone:
    """The action on every sample that matches, in chunks of 1,000 transactions.

    `expected` is the number the person confirmed; where it no longer is the number of matches nothing is changed. Above
    50,000 it is refused: narrow the filter. `query` says in the audit log what was matched. A chunk that has been
    written stays written if the server dies between two; the batch's undo takes back what was done.
    """
    _check(action, reason, "")
    matching = narrow(Sample.objects.of(access.project)).order_by()
    count = matching[: MAX_MATCHING + 1].count()
    if count > MAX_MATCHING:
        raise Invalid(
            f"More than {MAX_MATCHING:,} samples match. Narrow the filter and do it in parts.", code="too_many"
        )
    if count != expected:
        raise Conflict(
            f"{count:,} samples match now, not the {expected:,} that you confirmed. Nothing was changed.",
            code="count_changed",
            current={"count": count},
        )
    ids = list(matching.order_by("id").values_list("id", flat=True))
    batch = secrets.token_hex(12)
    rows: list[Row] = []
    for start in range(0, len(ids), CHUNK):
        with transaction.atomic():
            rows += _chunk(access, action, ids[start : start + CHUNK], batch, reason, "")
    with transaction.atomic():
        return _finish(access, batch, action, tuple(rows), keep_rows=False, query=query)


def _check(action: str, reason: str, comment: str) -> None:
    wrong = wrong_text("reason", reason, most=200) + wrong_text("comment", comment, most=MAX_COMMENT)
    if action not in ACTIONS:
        wrong.append(FieldError("action", f"is one of {', '.join(ACTIONS)} for many samples, not {action!r}"))
    if wrong:
        raise Invalid("; ".join(f"`{error.path}` {error.message}" for error in wrong) + ".", errors=wrong)


def _chunk(access: Access, action: str, ids: list[int], batch: str, reason: str, comment: str) -> list[Row]:
    """Locks, logs and changes one chunk; samples that another reviewer holds or that are so already are refused."""
    now = timezone.now()
    samples = list(Sample.objects.of(access.project).filter(pk__in=ids).order_by("id").select_for_update(of=("self",)))
    leased = dict(
        Lease.objects.filter(sample_id__in=ids, until__gt=now)
        .exclude(reviewer=access.user)
        .values_list("sample_id", "reviewer__username")
    )
    status = STATUS_AFTER[action]
    rows, changing = [], []
    for sample in samples:
        if sample.pk in leased:
            rows.append(Row(str(sample.pk), refusal=f"It is in review by {leased[sample.pk]}."))
        elif sample.status == status:
            rows.append(Row(str(sample.pk), refusal=f"It is {sample.get_status_display().lower()} already."))
        else:
            changing.append(sample)
            rows.append(Row(str(sample.pk), status, sample.version + 1))
    Decision.objects.bulk_create([_line(sample, access, action, batch, reason, comment) for sample in changing])
    for sample in changing:
        sample.status, sample.version = status, sample.version + 1
        sample.decided_by = None if action == Action.QUEUE else access.user
        sample.decided_at = None if action == Action.QUEUE else now
        sample.leak_cleared = action == Action.APPROVE and bool(sample.flags & Flag.LEAK)
    _write(changing)
    Lease.objects.filter(sample_id__in=[sample.pk for sample in changing]).delete()
    return rows


def _line(sample: Sample, access: Access, action: str, batch: str, reason: str, comment: str) -> Decision:
    return Decision(
        sample=sample,
        reviewer=access.user,
        action=action,
        pick=Pick.CANDIDATE if action == Action.APPROVE and sample.kind == Kind.TURN else "",
        reason=reason,
        comment=comment,
        version=sample.version,
        batch=batch,
        before=before_of(sample),
    )


def _write(samples: list[Sample]) -> None:
    """One UPDATE for each distinct outcome: two at most, by whether a leak was cleared. The rows are locked."""
    for cleared in (False, True):
        alike = [sample for sample in samples if sample.leak_cleared is cleared]
        if alike:
            first = alike[0]
            Sample.objects.filter(pk__in=[sample.pk for sample in alike]).update(
                status=first.status,
                decided_by=first.decided_by,
                decided_at=first.decided_at,
                leak_cleared=cleared,
                version=F("version") + 1,
            )


def _finish(
    access: Access, batch: str, action: str, rows: tuple[Row, ...], *, keep_rows: bool, query: str = ""
) -> BulkDone:
    refused = tuple(row for row in rows if row.refusal)
    changed = len(rows) - len(refused)
    audit.record(
        actor=access.user,
        action=f"sample.bulk_{action}",
        subject=batch,
        project=access.project,
        data={"changed": changed, "refused": len(refused), "query": query},
    )
    return BulkDone(batch, action, changed, rows if keep_rows else (), refused[:20], len(refused))
