"""`Sample.leased`: a column of the queue's indexes, so that a take passes no sample that others have open.

The database writes it, however leases are made and go; the next take finds those that have lapsed.
The queue still looks for a live lease on the sample that it offers: the column only makes that search short.
"""

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from curation.review.models import Lease
from curation.samples.models import Sample
from curation.web.database.prepared import Prepared
from curation.web.database.schema_objects import SchemaObjects

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


# Nearly every take finds none. Django writes `held=True` without a comparison, for which SQLite reads no index.
_lapsed = Prepared(lambda: Lease.objects.filter(held__in=[True], until__lte=Now()).values_list("sample_id"))
