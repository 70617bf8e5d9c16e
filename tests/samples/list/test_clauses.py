"""How a page is read: by an index, without OFFSET, with any filter and any order."""

from itertools import product
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext

from curation.projects.models import Project
from curation.samples.list import search
from curation.samples.list.filters import SampleList
from curation.samples.list.pages import sample_page
from curation.samples.models import Sample, source_url
from curation.web.lists import clauses
from tests.factories import make_project, make_run, make_sample, make_user

pytestmark = pytest.mark.django_db
FILTERS = [
    *("", "bucket=final", "bucket=final,refined", "status=pending", "kind=turn", "kind=trajectory", "flags=leak"),
    *("model=a,b", "source=one", "repo=r", "action_style=read", "instance_id=i", "reviewer=ada", "axes=task=x"),
    *("score_min=50", "score_max=60", "created_after=2020-01-01", "created_before=2030-01-01", "text=totals"),
    *("text=-totals", 'text="fix the"', "bucket=final&repo=r&text=totals&score_min=1", "run={run}"),
]

# Each filter in three orders, each order with a third of the filters.
READ = [pair for number, pair in enumerate(product(FILTERS, SampleList.sorts)) if (number + number // 9) % 3 == 0]


@pytest.fixture
def project() -> Project:
    project, ada = make_project(), make_user("ada")
    run = make_run(project)
    for number in range(60):
        make_sample(
            project,
            score=float(number),
            bucket=("final", "refined", "defeat")[number % 3],
            status=("pending", "approved")[number % 2],
            flags=number % 5,
            kind="trajectory" if number % 4 == 0 else "turn",
            axes={"task": "x"} if number % 8 == 0 else {},
            repo="r" if number % 7 == 0 else "other",
            source="one",
            model="a",
            action_style="read",
            instance_id="i",
            run=run,
            decided_by=ada if number % 2 else None,
            priority=float(number % 9),
            body="Fix the totals" if number % 3 else "Fix it",
        )
    return project


def wanted(query: str, project: Project, **values: str) -> SampleList:
    run = project.runs.get().pk
    return SampleList.from_query(QueryDict("&".join([query.format(run=run), urlencode({"limit": "25", **values})])))


def read(project: Project, query: str, sort: str, **values: str) -> list[int]:
    """Ids of all pages, one after the other."""
    found: list[int] = []
    cursor = None
    while True:
        page = sample_page(project, wanted(query, project, sort=sort, cursor=cursor or "", **values))
        found += [row.pk for row in page.rows]
        cursor = page.next_cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("few", [0, pytest.param(10, marks=pytest.mark.slow), 1_000])
def test_every_way_of_reading_returns_the_same_rows(
    project: Project, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of matches decides how a page is read; the rows are those of the plain filter."""
    for name in ("FEW", "FEW_IN_RANGE"):
        monkeypatch.setattr(clauses, name, few)
    monkeypatch.setattr("curation.samples.list.filters.FEW", few)
    monkeypatch.setattr(search, "SET_MOST", few)
    for query, sort in READ:
        column = SampleList(sort=sort).order()
        plain = wanted(query, project).apply(Sample.objects.of(project))
        down = "-" if column.startswith("-") else ""
        expected = list(plain.order_by(column, f"{down}id").values_list("pk", flat=True))
        assert read(project, query, sort) == expected, (query, sort)


def test_pages_never_offset_and_count_only_when_asked(project: Project) -> None:
    for query, sort in READ:
        first = sample_page(project, wanted(query, project, sort=sort))
        with CaptureQueriesContext(connection) as captured:
            sample_page(project, wanted(query, project, sort=sort, cursor=first.next_cursor or ""))
        for asked in captured:
            assert "OFFSET" not in asked["sql"], (query, sort)
            assert "LIKE" not in asked["sql"], (query, sort)
            assert "COUNT(*)" not in asked["sql"] or "LIMIT" in asked["sql"], (query, sort)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by statistics, which 60 rows do not have")
def test_no_page_scans_the_table(project: Project) -> None:
    with CaptureQueriesContext(connection) as captured:
        for query, sort in READ:
            sample_page(project, wanted(query, project, sort=sort))
    for asked in captured:
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN QUERY PLAN " + asked["sql"])
            plan = [row[3] for row in cursor.fetchall()]
        assert not [step for step in plan if step.startswith("SCAN samples_sample")], plan


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite reads no more rows than the page has")
def test_only_the_rows_of_a_filtered_page_are_joined(project: Project) -> None:
    with CaptureQueriesContext(connection) as captured:
        sample_page(project, wanted("bucket=final", project, sort="-score"))
    *_, found, joined = [asked["sql"] for asked in captured if asked["sql"].startswith("SELECT")]
    assert "LIMIT" in found and "JOIN" not in found and "JOIN" in joined, (found, joined)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the plans of SQLite")
@pytest.mark.parametrize("sort", SampleList.sorts)
def test_a_page_of_a_whole_project_is_one_range_of_the_orders_index(project: Project, sort: str) -> None:
    with CaptureQueriesContext(connection) as captured:
        sample_page(project, SampleList(sort=sort, limit=7))
    assert len(captured) == 1
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN QUERY PLAN " + captured[0]["sql"])
        plan = " / ".join(row[3] for row in cursor.fetchall())
    assert "USING INDEX sample_list" in plan
    assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize(
    ("source", "row", "url"),
    [
        ("turns.jsonl", 3, None),
        ("s3://bucket/a.parquet", 3, None),
        ("http://example.org/a.jsonl", 3, None),
        ("https://example.org/a.jsonl", 3, "https://example.org/a.jsonl#row=3"),
        ("https://example.org/a.jsonl", None, None),
        ("https://user:secret@example.org/a.jsonl", 3, None),
        ("https://example.org/a.jsonl?X-Signature=1", 3, None),
        ("https://[broken", 3, None),
        ("hf://datasets/acme/turns", 3, "https://huggingface.co/datasets/acme/turns#row=3"),
        ("hf://datasets/acme/turns@v1/a b.parquet", 3,
         "https://huggingface.co/datasets/acme/turns/blob/v1/a%20b.parquet#row=3"),
        ("hf://datasets/acme", 3, None),
    ],
)  # fmt: skip
def test_only_public_sources_are_linked(source: str, row: int | None, url: str | None) -> None:
    assert source_url(source, row) == url
