"""`Sample.leased`: a column of the queue's indexes, so that a take passes no sample that others have open.

The database writes it, however leases are made and go; the next take finds those that have lapsed (`free_lapsed`).
The queue still looks for a live lease on the sample that it offers: the column only makes that search short.
"""

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
