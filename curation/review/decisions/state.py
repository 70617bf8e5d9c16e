"""The fields of a sample that decisions change, their copy in the log for an undo, the refusal of a stale version, and
the signal and the event of decided samples.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NotRequired, TypedDict

from django.db.models import Exists
from django.dispatch import Signal
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from curation.guarantees.models import Guarantee
from curation.projects.access import Access
from curation.projects.models import Project
from curation.review.models import STATUS_AFTER, Action, Decision, Pick
from curation.samples.models import Sample, SampleKind, SampleStatus
from curation.web.database.prepared import Prepared
from curation.web.ids import IdList
from curation.web.problems import FieldError, Invalid, Stale
from curation.webhooks.emit import emit_each
from curation.webhooks.models import Webhook, WebhookEvent


class Before(TypedDict):
    """`Decision.before`: the state that an undo restores. Times are ISO 8601. The last four are there where several
    people decide; `published` is the revision that the decision showed to everybody. `marks` are those of
    a session before the decision trimmed it."""

    status: str
    decided_by: int | None
    decided_at: str | None
    leak_cleared: bool
    opinions: NotRequired[int]
    disputed: NotRequired[bool]
    round: NotRequired[int]
    published: NotRequired[int]
    marks: NotRequired[dict[str, dict[str, object]]]


# The longest texts of a decision, in characters.
MAX_REASON, MAX_COMMENT = 200, 20_000
# The parts of `Before` that are about several people.
OF_SEVERAL: Final = ("opinions", "disputed", "round")
# Sent with the `lines` of the log, in their transaction, where a guarantee may be about their samples.
decided = Signal()


def log_line(
    sample: Sample, access: Access, action: str, *, pick: str = "", reason: str = "", comment: str = "", batch: str = ""
) -> Decision:
    """A line of the log on the sample as it is now, not yet written. Approving a turn keeps the challenger's answer
    unless another side is picked."""
    if not pick and action == Action.APPROVE and sample.kind == SampleKind.TURN:
        pick = Pick.CHALLENGER
    before: Before = {
        "status": sample.status,
        "decided_by": sample.decided_by_id,
        "decided_at": sample.decided_at.isoformat() if sample.decided_at else None,
        "leak_cleared": sample.leak_cleared,
    }
    if sample.opinions:
        before |= {"opinions": sample.opinions, "disputed": sample.disputed, "round": sample.round}
    return Decision(
        sample=sample,
        reviewer=access.user,
        action=action,
        pick=pick,
        reason=reason,
        comment=comment,
        version=sample.version,
        batch=batch,
        before=before,
    )


# The state of a sample that nobody has decided.
UNDECIDED: Mapping[str, object] = {
    "status": SampleStatus.PENDING.value,
    "decided_by_id": None,
    "decided_at": None,
    "leak_cleared": False,
}


def restored(before: Before, *, approved: bool) -> dict[str, object]:
    """The fields of an update that restores `before`. `approved` says whether an approval stands: the sample does not
    become approved again if its text has changed since that approval."""
    if before["status"] == SampleStatus.APPROVED and not approved:
        return dict(UNDECIDED)
    at = before["decided_at"]
    several = {name: before[name] for name in OF_SEVERAL if name in before}
    return several | {
        "status": before["status"],
        "decided_by_id": before["decided_by"],
        "decided_at": parse_datetime(at) if at else None,
        "leak_cleared": before["leak_cleared"],
    }


def change(sample: Sample, **fields: object) -> None:
    """Write the fields and the next version, if the sample still has the version that was read."""
    changed = Sample.objects.filter(pk=sample.pk, version=sample.version).update(version=sample.version + 1, **fields)
    if not changed:
        raise stale(sample, given=sample.version)
    sample.version += 1
    for name, value in fields.items():
        setattr(sample, name, value)


def fields_after(action: str, reviewer: int, *, leak: bool, at: datetime | None = None) -> dict[str, object]:
    """The fields that a settling action gives a sample; approving one that is flagged as a leak clears the flag.
    `reviewer` is a user's id, `at` when they decided if that is not now."""
    queued = action == Action.QUEUE
    return {
        "status": STATUS_AFTER[action],
        "decided_by_id": None if queued else reviewer,
        "decided_at": None if queued else at or timezone.now(),
        "leak_cleared": leak and action == Action.APPROVE,
    }


def refuse_stale_version(sample: Sample, version: int | None) -> None:
    if version is not None and version != sample.version:
        raise stale(sample, given=version)


def refuse_errors(errors: Sequence[FieldError]) -> None:
    if errors:
        raise Invalid.fields(errors)


def stale(sample: Sample, *, given: int | str) -> Stale:
    """Return the refusal, with the version and status now, the last reviewer and the time."""
    by = sample.decided_by.get_username() if sample.decided_by else None
    at = sample.decided_at.isoformat() if sample.decided_at else None
    who = f", decided by {by}" if by else ""
    return Stale(
        f"Sample {sample.pk} has changed since you read it: you saw version {given}, now it is version "
        f"{sample.version}, {sample.get_status_display().lower()}{who}. Nothing was overwritten.",
        current={"version": sample.version, "status": sample.status, "decided_by": by, "decided_at": at},
    )


# Every decision of one sample makes this query: whether a guarantee is about it, and whether the project has a webhook.
_told_of_one = Prepared(
    lambda project, sample: Project.objects.filter(pk=project).values_list(
        Exists(Guarantee.objects.filter(withdrawn_at=None, audit__draws__sample=sample)),
        Exists(Webhook.objects.filter(project=project)),
    ),
    project=int,
    sample=int,
)


def emit_decided(project: Project, lines: Sequence[Decision]) -> None:
    """Send `decided` and emit `review.decided` for these lines of the log, after their samples were changed. Needs a
    transaction. Nearly always neither a guarantee nor a webhook is told of the decision of one sample."""

    def data() -> Iterable[dict[str, object]]:
        ids = IdList([line.sample_id for line in lines])
        status = dict(Sample.objects.filter(pk__in=ids).values_list("pk", "status"))
        for line in lines:
            yield {
                "sample": str(line.sample_id),
                "decision": str(line.pk),
                "action": line.action,
                "status": status[line.sample_id],
                "waits": not line.settles,
                "batch": line.batch or None,
            }

    guarantees = webhooks = bool(lines)
    if len(lines) == 1:
        guarantees, webhooks = _told_of_one.first(project=project.pk, sample=lines[0].sample_id) or (False, False)
    if guarantees:
        decided.send(Decision, lines=lines)
    if webhooks:
        emit_each(project, WebhookEvent.REVIEW_DECIDED, data)
