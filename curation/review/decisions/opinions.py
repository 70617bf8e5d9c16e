"""Several people decide one sample, each without seeing the others (`settings.review.overlap`).

Their decisions wait (`Decision.settles` is False) until enough people have decided. Equal ones settle the sample by the
last of them; different ones make it disputed, and a person with the scope `run` adjudicates. A waiting decision changes
neither the status nor the version of an undecided sample, so no page and no call can tell that it was made. One on a
sample that needs refining makes it undecided again, for the others to decide.
"""

from collections.abc import Iterable
from dataclasses import replace

from django.db.models import F, Max
from django.urls import reverse

from curation.assignments.models import AssignedSample
from curation.notifications.notify import notify_mentioned
from curation.projects.access import Access
from curation.projects.models import Scope
from curation.projects.settings.document import Review
from curation.review.decisions.state import OF_SEVERAL, UNDECIDED, change, fields_after, is_waiting
from curation.review.models import Action, Decision, DecisionQuerySet, Revision
from curation.samples.blind import unblind
from curation.samples.models import LEAKS, Bucket, Flag, Sample, SampleStatus
from curation.web.problems import Conflict, FieldError, Invalid, NotAllowed

SETTLED = (SampleStatus.APPROVED, SampleStatus.REJECTED)


def opinions_needed(sample: Sample, review: Review) -> int:
    """Return how many people must decide the sample. The first decision fixes it: a later change of the setting or
    of the score counts for samples that nobody has decided."""
    return sample.opinions or _needed_by_rule(sample, review)


def _needed_by_rule(sample: Sample, review: Review) -> int:
    is_doubtful = sample.bucket == Bucket.REFINED or sample.flags & Flag.FLIP
    return review.overlap if review.overlap_on == "all" or is_doubtful else 1


def sees_opinions(access: Access) -> bool:
    """Whether the caller adjudicates, and so sees the others' decisions before the sample is settled."""
    return access.may(Scope.RUN)


def decisions_shown_to(access: Access, rows: DecisionQuerySet) -> DecisionQuerySet:
    """Those that the caller may see: others' only when their sample is settled, or to adjudicate."""
    return rows if sees_opinions(access) else rows.own_and_settled(access.user.pk)


def look_at_opinions(access: Access, rows: Iterable[Decision]) -> None:
    """Note that the caller saw the others' decisions on unsettled samples. Their samples are read."""
    for row in rows:
        if row.reviewer_id != access.user.pk and is_waiting(row, row.sample):
            unblind(access, row.sample)


def outcome_of(line: Decision) -> tuple[str, str, str]:
    """The parts in which two decisions must agree: the action, and of an approval the picked side and the exact text, a
    revision's too. Reasons, comments and the time spent may differ."""
    return (line.action, line.pick, line.text_sha256) if line.action == Action.APPROVE else (line.action, "", "")


def opinions_of(sample: Sample) -> list[Decision]:
    """Return the decisions of the sample's present round, one per person, the oldest first."""
    rows = Decision.objects.opinions().filter(sample=sample, round=sample.round, settles=False)
    return list({row.reviewer_id: row for row in rows.select_related("reviewer", "revision").order_by("id")}.values())


def enter_opinion(line: Decision, access: Access, review: Review) -> dict[str, object]:
    """Decide whether a new line of the log settles its sample, and return the fields that settling changes beside
    the status. A line that waits has `settles` False. The caller holds the sample's lock and has named the approved
    text."""
    sample = line.sample
    needed = opinions_needed(sample, review)
    if needed == 1:
        if not sample.opinions:
            return {}
        publish_revision(line, line.revision)
        return next_round(sample)
    if sample.status in SETTLED:
        if not sees_opinions(access):
            raise Conflict(
                f"Several people settled sample {sample.pk}. A curator can change that; you can undo your decision.",
                code="settled_by_several",
                current={"version": sample.version, "status": sample.status},
            )
        return {}
    if line.action == Action.QUEUE:
        return next_round(sample)
    if sample.disputed and sees_opinions(access):
        _refuse_party(sample, access)
        publish_revision(line, line.revision)
        return next_round(sample)
    line.round = sample.round
    given = [*(row for row in opinions_of(sample) if row.reviewer_id != access.user.pk), line]
    agree = len({outcome_of(row) for row in given}) == 1
    if len(given) >= needed and agree:
        publish_revision(line, line.revision)
        return next_round(sample)
    line.settles = False
    _note(sample, opinions=needed, disputed=len(given) >= needed)
    if sample.status == SampleStatus.NEEDS_REFINE:
        change(sample, **UNDECIDED)
    return {}


def next_round(sample: Sample) -> dict[str, object]:
    """The field values of a new round, in which earlier opinions do not count."""
    return {"opinions": 0, "disputed": False, "round": sample.round + 1}


def notify_of_opinions(access: Access, sample: Sample, *, before: Decision) -> None:
    """Tell those whom people mentioned in the decisions that waited for this one, and in private notes, since everybody
    sees these now. Settled again after an undo, nobody is told twice."""
    rows = Decision.objects.opinions().filter(sample=sample, round=before.before["round"], settles=False)
    about, link = f"sample {sample.pk}", reverse("sample-page", args=[access.project.slug, sample.pk])
    for row in rows.exclude(pk=before.pk).select_related("reviewer", "revision").order_by("id"):
        note = row.revision.note if row.revision is not None else ""
        said = f"{row.reason}\n{row.comment}\n{note}"
        author = replace(access, user=row.reviewer)
        notify_mentioned(access=author, text=said, about=about, link=link, once_since=row.created_at)


def withdraw_opinion(sample: Sample) -> None:
    """Count the remaining opinions after a waiting decision was undone."""
    given = opinions_of(sample)
    private = Revision.objects.filter(sample=sample).not_undone().exclude(private_to=None).exists()
    asked = AssignedSample.objects.filter(sample=sample, assignment__second_opinion=True).exists()
    needed = sample.opinions if given or private or asked else 0
    agree = len({outcome_of(row) for row in given}) <= 1
    _note(sample, opinions=needed, disputed=bool(given) and len(given) >= needed and not agree)
    refined = Decision.objects.filter(sample=sample).standing(Action.REFINE).first()
    if not given and refined is not None and sample.status == SampleStatus.PENDING:
        change(sample, **fields_after(Action.REFINE, refined.reviewer_id, leak=False, at=refined.created_at))


def require_second_opinion(sample: Sample, review: Review) -> None:
    """Let two people decide the undecided sample, if it is not for more."""
    _note(sample, opinions=max(opinions_needed(sample, review), 2), disputed=sample.disputed)


def hold_for_second_opinion(line: Decision) -> None:
    """Turn the decision that settles its sample into one that waits for a second person, who sees neither it nor the
    text that it wrote. The caller holds the sample's lock."""
    sample = line.sample
    line.settles, line.round = False, sample.round
    line.save(update_fields=["settles", "round"])
    if line.revision_id is not None:
        own = Revision.objects.filter(pk=line.revision_id, author=line.reviewer_id, private_to=None, children=None)
        own.update(private_to=line.reviewer_id)
    change(sample, **UNDECIDED, opinions=2, disputed=False)


def settle_without_request(sample: Sample, review: Review) -> Decision | None:
    """Count the decisions of an undecided sample again after a request for a second opinion was withdrawn. If they
    suffice and agree, the last one settles the sample and is returned. The caller holds the sample's lock."""
    if sample.status in SETTLED or not sample.opinions:
        return None
    needed, given = _needed_by_rule(sample, review), opinions_of(sample)
    agree = len({outcome_of(row) for row in given}) == 1
    if len(given) < needed or not agree:
        private = Revision.objects.filter(sample=sample).not_undone().exclude(private_to=None).exists()
        opinions = max(needed, len(given)) if given or private else 0
        _note(sample, opinions=opinions, disputed=len(given) > 1 and len(given) >= needed)
        return None
    line = given[-1]
    line.settles, line.sample = True, sample
    if needed == 1:  # decided alone, and undone to a sample that one person decides
        line.round = 0
        line.before = {name: value for name, value in line.before.items() if name not in OF_SEVERAL}
    publish_revision(line, line.revision)
    line.save(update_fields=["settles", "round", "before"])
    decided = fields_after(line.action, line.reviewer_id, leak=bool(sample.flags & LEAKS), at=line.created_at)
    change(sample, **decided, **next_round(sample))
    return line


def publish_revision(line: Decision, revision: Revision | None) -> None:
    """Show everybody the revision that a settling approval keeps, as the latest one of its answer. `before` notes it
    for an undo."""
    if revision is None or revision.private_to_id is None:
        return
    others = Revision.objects.filter(sample=line.sample).exclude(pk=revision.pk)
    number = max(revision.number, (others.aggregate(last=Max("number"))["last"] or 0) + 1)
    Revision.objects.filter(pk=revision.pk).update(private_to=None, number=number)
    line.before["published"] = revision.pk
    if revision.leak_flag:
        line.sample.flags |= Flag.LEAK
        Sample.objects.filter(pk=line.sample_id).update(flags=line.sample.flags)


def withdraw_revision(line: Decision) -> None:
    """Hide the revision of an undone decision again."""
    published = line.before.get("published")
    if published is not None:
        Revision.objects.filter(pk=published).update(private_to=F("author"))


def decision_to_keep(line: Decision, access: Access, decision_id: int) -> Decision:
    """Return the opinion that an adjudicator makes the outcome of a disputed sample, whose side and text the line then
    has."""
    sample = line.sample
    if not sees_opinions(access):
        raise NotAllowed("Adjudicating needs the scope `run`: curators and admins have it.")
    kept = next((row for row in opinions_of(sample) if row.pk == decision_id), None)
    if kept is None or not sample.disputed:
        raise Conflict(
            f"Decision {decision_id} is none of those that disagree about sample {sample.pk} now.", code="changed_since"
        )
    if line.action != kept.action:
        raise Invalid("The action is not that of the decision to keep.", errors=[FieldError("action", "differs")])
    line.pick = kept.pick
    publish_revision(line, kept.revision)
    return kept


def _refuse_party(sample: Sample, access: Access) -> None:
    if any(row.reviewer_id == access.user.pk for row in opinions_of(sample)):
        raise Conflict(
            f"People disagree about sample {sample.pk}, and you are one of them. Someone else adjudicates, or you undo "
            "your decision first.",
            code="own_dispute",
        )


def _note(sample: Sample, *, opinions: int, disputed: bool) -> None:
    """Without a new version, which would tell others that somebody has decided."""
    if (sample.opinions, sample.disputed) != (opinions, disputed):
        Sample.objects.filter(pk=sample.pk).update(opinions=opinions, disputed=disputed)
        sample.opinions, sample.disputed = opinions, disputed
