"""Pages and calls of a project with many samples do work that does not grow with their number.

The work is counted and not timed: instructions of SQLite's virtual machine, or pages that PostgreSQL reads. So the
result is the same on a busy machine.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import orjson
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from config.shell import GROUPS, SECTIONS
from curation.projects.models import Project, Role
from curation.review.queue.take import open_count
from curation.samples.models import Sample
from curation.web.text.figures import COUNTED_UP_TO
from tests.factories import make_member, make_project, make_user

FEW, MANY = 16_000, 128_000
PAGES = sorted(
    {entry[2] for _, entries in GROUPS for entry in entries}
    | {name for pages in SECTIONS.values() for name, _ in pages}
)


def has_grown(before: int, after: int) -> bool:
    return after > 1.5 * before + 500


pytestmark = pytest.mark.django_db


def grow(project: Project, rows: int) -> None:
    """Copy the samples until there are so many."""
    columns = [field.column for field in Sample._meta.concrete_fields if not field.primary_key]
    values = ["priority + id" if column == "priority" else f'"{column}"' for column in columns]
    names = ", ".join(f'"{column}"' for column in columns)
    while (count := Sample.objects.of(project).count()) < rows:
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO samples_sample ({names}) SELECT {', '.join(values)} FROM samples_sample LIMIT %s",  # noqa: S608
                [min(count, rows - count)],
            )


@contextmanager
def counted_work() -> Iterator[Callable[[], int]]:
    """Count the database's work for the statements of the block."""
    if connection.vendor == "sqlite":
        steps = [0]

        def step() -> None:
            steps[0] += 1

        connection.ensure_connection()
        connection.connection.set_progress_handler(step, 100)
        try:
            yield lambda: 100 * steps[0]
        finally:
            connection.connection.set_progress_handler(None, 0)
    else:
        with CaptureQueriesContext(connection) as captured:
            yield lambda: sum(map(_blocks, [query["sql"] for query in captured if query["sql"].startswith("SELECT")]))


def _blocks(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}")
        plan = cursor.fetchone()[0]
    plan = plan if isinstance(plan, list) else orjson.loads(plan)
    return int(plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"])


def work_by_page(client: Client, project: Project) -> dict[str, int]:
    paths = {name: reverse(name, args=[project.slug]) for name in PAGES}
    paths["REST samples"] = f"/api/v1/projects/{project.slug}/samples"
    work = {}
    for name, path in paths.items():
        if client.get(path).status_code == 403:  # and caches are filled
            continue
        with counted_work() as count:
            client.get(path)
            work[name] = count()
    return work


def test_no_page_reads_more_of_a_larger_project() -> None:
    project = make_project()
    # PostgreSQL runs each statement again to explain it.
    roles = (Role.REVIEWER, Role.ADMIN) if connection.vendor == "sqlite" else (Role.ADMIN,)
    clients = {role: client_of(project, role) for role in roles}
    Sample.objects.bulk_create(Sample(project=project, priority=float(n)) for n in range(1_000))

    def work() -> dict[str, int]:
        return {
            f"{page} of a {role}": count
            for role, client in clients.items()
            for page, count in work_by_page(client, project).items()
        }

    grow(project, FEW)
    if connection.vendor == "postgresql":
        analyze()
    before = work()
    grow(project, MANY)
    grown = {}
    # PostgreSQL's autovacuum analyzes a table that has grown within a minute, and nothing analyzes one of SQLite.
    if connection.vendor == "sqlite":
        after = work()
        grown = {name: (before[name], after[name]) for name in after if has_grown(before[name], after[name])}
    analyze()
    planned = work()
    grown |= {
        f"{name}, analyzed": (before[name], planned[name]) for name in planned if has_grown(before[name], planned[name])
    }
    assert not grown, grown


def client_of(project: Project, role: Role) -> Client:
    client = Client()
    client.force_login(make_member(project, role=role))
    return client


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL has statistics of the index's size")
def test_the_count_of_the_sidebar_does_not_depend_on_the_order_in_which_indexes_were_made() -> None:
    """A migration of a site that exists makes its index last; that of a new site stands where the model has it."""
    project = make_project(user=make_user("ada"))
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX sample_list_predicted")
        cursor.execute("CREATE INDEX sample_list_predicted ON samples_sample (project_id, predicted_key, id)")
    with CaptureQueriesContext(connection) as captured:
        Sample.objects.create(project=project)
        open_count(project, make_user("bob").pk)
    counts = [query["sql"] for query in captured if "opinions" in query["sql"] and "COUNT" in query["sql"]]
    with connection.cursor() as cursor:
        plans = [row[-1] for sql in counts for row in cursor.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()]
    assert "SEARCH V0 USING INDEX sample_opinions (project_id=? AND opinions>?)" in plans


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite is tested without statistics above")
def test_the_count_of_the_sidebar_stops_at_its_limit_without_statistics() -> None:
    """A planner that knows no sizes takes every index of undecided samples for equally good."""
    project = make_project(user=make_user("ada"))
    Sample.objects.bulk_create(Sample(project=project, priority=float(n)) for n in range(1_000))
    grow(project, MANY)
    reviewer = make_user("bob").pk
    with counted_work() as count:
        assert open_count(project, reviewer) == COUNTED_UP_TO
        assert count() < 1.5 * COUNTED_UP_TO


def analyze() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
