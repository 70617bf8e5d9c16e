"""Leases: claim a sample, keep it while it is open, give it back. A lapsed lease is free for the next reviewer, and so
is the lease of a person who may not review any more.

A lease has seats: left and right on the page, king and challenger in the data. No other module maps one to the other.

`Sample.leased` is a column of the queue's indexes, so that a take passes no sample that others have open. The database
writes it, however leases are made and go; the next take finds those that have lapsed (`free_lapsed`). The queue still
looks for a live lease on the sample that it offers: the column only makes that search short.
"""

from datetime import timedelta
from enum import StrEnum
from itertools import dropwhile
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.utils.crypto import constant_time_compare, salted_hmac

from curation.duels.models import Duel, Opponent
from curation.projects.access import Access
from curation.projects.models import SCOPES_OF_ROLE, Member, Project, Scope
from curation.review.models import SETTLING, Action, Decision, Lease, Pick
from curation.samples.blind import reviews_blind
from curation.samples.models import Sample, SampleStatus
from curation.web.database.clock import database_now
from curation.web.database.prepared import Prepared
from curation.web.database.schema_objects import SchemaObjects
from curation.web.problems import Conflict, FieldError, Invalid, NotFound

LEFT, RIGHT = "left", "right"
# Values of a preference besides left and right.
PICK_OF_WORD = {
    "challenger": Pick.CHALLENGER,
    "candidate": Pick.CHALLENGER,
    "king": Pick.KING,
    "opponent": Pick.KING,
    "reference": Pick.KING,
    "draw": Pick.DRAW,
}


class Seats(StrEnum):
    """Where the two answers of a duel are shown. The value is stored in `Decision.seat`."""

    KING_LEFT = "king_left"
    CHALLENGER_LEFT = "challenger_left"

    @property
    def left(self) -> Pick:
        return Pick.KING if self is Seats.KING_LEFT else Pick.CHALLENGER

    @property
    def right(self) -> Pick:
        return Pick.CHALLENGER if self is Seats.KING_LEFT else Pick.KING


def draw_swapped(access: Access, sample: Sample) -> bool:
    """True puts the challenger on the left. Where nothing is hidden the king is always on the left.

    Nobody without the server's key can tell the draw, and a reviewer who sees the sample again sees the same seats.
    """
    drawn = salted_hmac("seats", f"{sample.pk} {access.user.pk}", algorithm="sha256").digest()
    return access.project.settings.review.blind and drawn[0] % 2 == 1


def is_blind(access: Access, sample: Sample) -> bool:
    """Whether sides, judges and score are hidden: until the sample is decided, if the project asks for that. A person
    with an earlier decision on a sample that a new text reopened has seen them, and its page shows them the earlier
    approval."""
    if not access.project.settings.review.blind or sample.status != SampleStatus.PENDING:
        return False
    # A new text would have raised the first version.
    return sample.version == 1 or not _decided_before_reopening(access, sample)


def _decided_before_reopening(access: Access, sample: Sample) -> bool:
    """Whether a new text reopened the sample last, and the caller decided it before, or wrote that text. A decision
    that waits for others does not count since then."""
    rows = Decision.objects.filter(sample=sample, action__in=SETTLING).not_undone().order_by("-id")
    lines = rows.values_list("settles", "action", "reviewer_id")
    settled = list(dropwhile(lambda line: not line[0], lines))
    return bool(settled) and settled[0][1] == Action.REOPEN and access.user.pk in {line[2] for line in settled}


def seats_of(lease: Lease) -> Seats:
    return Seats.CHALLENGER_LEFT if lease.swapped else Seats.KING_LEFT


def shown_seats(access: Access, sample: Sample, lease: Lease | None) -> Seats:
    """The seats on this person's page: while blind those of their lease, afterwards those that they decided on, and the
    king on the left for everyone else. While blind and without a lease they are those that a lease would get."""
    if not is_blind(access, sample):
        return decided_seats(access, sample) or Seats.KING_LEFT
    if lease is not None:
        return seats_of(lease)
    return Seats.CHALLENGER_LEFT if draw_swapped(access, sample) else Seats.KING_LEFT


def decided_seats(access: Access, sample: Sample) -> Seats | None:
    own = Decision.objects.filter(sample=sample, reviewer=access.user).exclude(seat="").order_by("-id")
    seat = own.values_list("seat", flat=True).first()
    return Seats(seat) if seat else None


def place_of(pick: str, seats: Seats) -> str:
    """Where a pick is shown: `left`, `right` or `draw`; "" for none."""
    if pick in ("", Pick.DRAW):
        return pick
    return LEFT if pick == seats.left else RIGHT


def side_token(access: Access, sample: Sample, side: str) -> str:
    """A name for one side of the sample that says nothing about which it is, and stays when seats are drawn again."""
    return salted_hmac("curation.review.queue.seats", f"side:{access.user.pk}:{sample.pk}:{side}").hexdigest()[:16]


def side_of_token(access: Access, sample: Sample, token: str) -> Pick:
    """The side that a page names. Raises `Invalid` where it names none of this sample."""
    for side in (Pick.CHALLENGER, Pick.KING):
        if constant_time_compare(side_token(access, sample, side), token):
            return side
    raise Invalid("The page names no answer of this sample. Open the sample as it is now.", code="unknown_answer")


def other_side(side: str) -> Pick:
    return Pick.KING if side == Pick.CHALLENGER else Pick.CHALLENGER


def seats_meant(
    preference: str, access: Access, sample: Sample, lease: Lease | None, *, page_left: str | None
) -> Seats | None:
    """The seats that left and right refer to: those that the page showed, or those of a script's lease.

    `page_left` is the token of the answer that the page showed on the left, "" for a page without two answers, None for
    a script. A page is decided as it was read, also where its lease has been given back or drawn again since. Refused
    is the pick of another answer than the challenger's where there is no other, and that of a side on a page that hides
    the sides: its draft would show where the side is.
    """
    if preference and PICK_OF_WORD.get(preference) != Pick.CHALLENGER and has_one_answer(sample):
        raise _wrong(f"Sample {sample.pk} has one answer, so there is nothing to pick. Approve or reject it.")
    if page_left is not None and names_side(preference) and hides_sides(access, sample):
        raise _hidden("preference", sample)
    if page_left is None or (not page_left and preference not in (LEFT, RIGHT)):
        return seats_of(lease) if lease else None
    left = side_of_token(access, sample, page_left)
    return Seats.KING_LEFT if left == Pick.KING else Seats.CHALLENGER_LEFT


def names_side(preference: str) -> bool:
    """Whether the preference says whose answer it is, and not where it is shown."""
    return PICK_OF_WORD.get(preference, Pick.DRAW) != Pick.DRAW


def hides_sides(access: Access, sample: Sample) -> bool:
    """Whether the sample has two answers and the page does not say whose they are."""
    return is_blind(access, sample) and not has_one_answer(sample)


def has_one_answer(sample: Sample) -> bool:
    return Duel.objects.filter(sample=sample, opponent=Opponent.NONE).exists()


def pick_of(preference: str, seats: Seats | None) -> str:
    """The pick behind a preference; "" for none. `seats` is None for a caller without a lease."""
    if not preference:
        return ""
    if preference in PICK_OF_WORD:
        return PICK_OF_WORD[preference].value
    if preference not in (LEFT, RIGHT):
        raise _wrong(f"`preference` is one of {', '.join((LEFT, RIGHT, *PICK_OF_WORD))}, not {preference!r}.")
    if seats is None:
        raise _wrong(
            "left and right are the seats of a lease, and you have none on this sample: say king or challenger."
        )
    return (seats.left if preference == LEFT else seats.right).value


def side_named(word: str, access: Access, sample: Sample, lease: Lease | None) -> str:
    """The side whose answer a script revises. While the sides are hidden from a reviewer it is a seat: the response,
    such as the refusal of an unchanged text, would tell whose answer is where."""
    if reviews_blind(access) and hides_sides(access, sample):
        if word not in (LEFT, RIGHT):
            raise _hidden("of", sample)
        return pick_of(word, shown_seats(access, sample, lease))
    return pick_of(word, seats_of(lease) if lease else None)


def _hidden(field: str, sample: Sample) -> Invalid:
    text = f"`{field}` is left or right: until sample {sample.pk} is decided, the king and the challenger are hidden."
    return Invalid(text, code="blind", errors=[FieldError(field, "is left or right")])


def _wrong(text: str) -> Invalid:
    return Invalid.at("preference", text)


def lock_sample(project: Project, sample_id: int) -> Sample:
    """The sample, locked until the transaction ends (on SQLite the transaction itself is the lock)."""
    found = _locked.first(project=project.pk, sample=sample_id)
    if found is None:
        raise NotFound(f"There is no sample {sample_id} in {project.slug}.")
    return found


def claim(sample: Sample, access: Access, seats: Seats | None = None, *, ahead: bool = False) -> Lease | None:
    """Lease the locked sample to the caller; None where another reviewer has it. Needs a transaction.

    `seats` are those that the caller has seen it with, None to draw them. `ahead`: the caller does not see it yet.

    The caller's own lease is extended and keeps its seats. A lapsed lease of another is replaced by a new row, so that
    one id means one drawing of the seats.
    """
    review = access.project.settings.review
    now = database_now()
    until = now + timedelta(seconds=review.lease_seconds)
    lease = lease_of(sample)
    if lease is not None and lease.reviewer_id == access.user.pk:
        lease.until = until
        if Lease.objects.filter(pk=lease.pk).update(until=until, ahead=ahead, held=True):
            return lease
        # A page that was left has released it since it was read.
    elif lease is not None:
        if lease.until > now:
            return None
        lease.delete()
    swapped = draw_swapped(access, sample) if seats is None else seats is Seats.CHALLENGER_LEFT
    return Lease.objects.create(sample=sample, reviewer=access.user, swapped=swapped, until=until, ahead=ahead)


def lease_of(sample: Sample) -> Lease | None:
    """The lease on the sample, of any reviewer, lapsed or not."""
    return _on_sample.first(sample=sample.pk)


def own_lease(sample: Sample, access: Access) -> Lease | None:
    lease = lease_of(sample)
    return lease if lease and lease.reviewer_id == access.user.pk else None


def hold(*, access: Access, sample_id: int, seats: Seats | None = None) -> Lease:
    """Claim this sample for the caller; a conflict names the reviewer with the lease."""
    with transaction.atomic():
        lease = claim(lock_sample(access.project, sample_id), access, seats)
        if lease is None:
            raise held_by_other(sample_id, holder_of(sample_id, other_than=access.user))
        return lease


def heartbeat(*, access: Access, lease: Lease) -> Lease:
    """Extend the caller's lease, also one that has lapsed and that nobody has taken since."""
    if lease.reviewer_id != access.user.pk:
        name = lease.reviewer.get_username()
        detail = f"Lease {lease.pk} belongs to {name}. Take a sample from the queue for a lease of your own."
        raise Conflict(detail, code="lease_lost")
    lease.until = database_now() + timedelta(seconds=access.project.settings.review.lease_seconds)
    if not Lease.objects.filter(pk=lease.pk, reviewer=access.user).update(until=lease.until):
        raise Conflict(f"Lease {lease.pk} has lapsed and someone else has taken the sample.", code="lease_lost")
    return lease


def release(*, access: Access, lease: Lease) -> None:
    """Give the sample back to the queue. A lease of another reviewer stays."""
    give_back(Lease.objects.filter(pk=lease.pk, reviewer=access.user))


def free_lapsed() -> None:
    """Return samples to the queue whose lease has lapsed. Needs a transaction; those that others lock are left to the
    next take."""
    if found := _lapsed.all():
        samples = Sample.objects.filter(pk__in=[sample for (sample,) in found]).only("id")
        locked = list(samples.select_for_update(skip_locked=True, of=("self",)))
        Lease.objects.filter(sample__in=locked, until__lte=Now()).update(held=False)


def give_back(leases: QuerySet[Lease]) -> None:
    """Delete the leases. Their samples are locked first, as a decision does, so that neither waits for the other."""
    with transaction.atomic():
        samples = Sample.objects.filter(pk__in=leases.values("sample")).only("id").order_by("id")
        list(samples.select_for_update(of=("self",)))
        leases.delete()


def holder_of(sample_id: int, *, other_than: User | None = None) -> User | None:
    """The reviewer, except `other_than`, with the sample open now."""
    rows = Lease.objects.filter(sample_id=sample_id, until__gt=Now()).select_related("reviewer")
    if other_than is not None:
        rows = rows.exclude(reviewer=other_than)
    lease = rows.first()
    return lease.reviewer if lease else None


def held_by_other(sample_id: int, holder: User | None) -> Conflict:
    name = holder.get_username() if holder else "someone else"
    return Conflict(f"Sample {sample_id} is in review by {name}.", code="leased", current={"in_review_by": name})


@receiver(post_save, sender=Member)
def release_after_change(instance: Member, **kwargs: Any) -> None:
    if Scope.REVIEW not in SCOPES_OF_ROLE[instance.role]:
        release_after_removal(instance)


@receiver(post_delete, sender=Member)
def release_after_removal(instance: Member, **kwargs: Any) -> None:
    give_back(Lease.objects.filter(reviewer=instance.user_id, sample__project=instance.project_id))


_on_sample = Prepared(lambda sample: Lease.objects.filter(sample=sample, seat=0), sample=int)
_locked = Prepared(
    lambda project, sample: Sample.objects.filter(project=project, pk=sample).select_for_update(of=("self",)),
    project=int,
    sample=int,
)
# Nearly every take finds none. Django writes `held=True` without a comparison, for which SQLite reads no index.
_lapsed = Prepared(lambda: Lease.objects.filter(held__in=[True], until__lte=Now()).values_list("sample_id"))


WRITE = "UPDATE samples_sample SET leased = new.held WHERE id = new.sample_id"
FREE = "UPDATE samples_sample SET leased = FALSE WHERE id = old.sample_id AND leased"
# The events, and the condition of each.
TRIGGERS = {
    "lease_made": ("INSERT", "WHEN (new.held)", WRITE),
    "lease_held": ("UPDATE OF held", "WHEN (new.held <> old.held)", WRITE),
    "lease_gone": ("DELETE", "", FREE),
}
SQLITE = {
    name: f"CREATE TRIGGER {name} AFTER {event} ON review_lease FOR EACH ROW {condition} BEGIN {statement}; END"
    for name, (event, condition, statement) in TRIGGERS.items()
}
POSTGRESQL = {
    name: f"""
        CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            {statement};
            RETURN NULL;
        END $$;
        CREATE TRIGGER {name} AFTER {event} ON review_lease
        FOR EACH ROW {condition} EXECUTE FUNCTION {name}()"""
    for name, (event, condition, statement) in TRIGGERS.items()
}
LEASED = SchemaObjects(
    table="review_lease",
    called="The queue",
    check="review.W001",
    statements={"sqlite": SQLITE, "postgresql": POSTGRESQL},
)
