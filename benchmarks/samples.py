"""Samples lists at 1,000,000 rows: pages first and deep, filters, search, the HTTP list.

    WINNOW_DATA=/tmp/bench python -m benchmarks.samples [--rows 1000000] [--times 30]

Makes the rows once in the database that the environment names (SQLite in `WINNOW_DATA`, or `DATABASE_URL`) and keeps
them. Prints a table with p50 and p95 in milliseconds and exits with 1 where a single filter's p95 reaches 50 ms, or a
page takes more than 15 ms and a REST call more than 8 ms of this process's own time in the median.
"""

import argparse
import gc
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, transaction
from django.http import QueryDict
from django.test import Client

from curation.projects.models import Member, Project, Role
from curation.runs.models import Run
from curation.samples.list.filters import SampleList
from curation.samples.list.pages import sample_page
from curation.samples.models import Sample, SampleKind
from curation.samples.scores import SampleRow, upsert_samples
from curation.web.lists.keyset import encode_cursor

Values = tuple[bool | int | float | str | datetime | None, ...]
LIMIT_MS = 50.0
PAGES_MS = {"p": 15.0, "api": 8.0}
PAGES = (
    *("samples/", "samples/?bucket=refined&status=pending&sort=-score", "", "queue/", "runs/", "thresholds/"),
    *("samples/assignments/", "samples/guarantee/", "trajectories/"),
)
CALLS = ("samples", "samples?sort=-score", "samples?bucket=final", "samples?text=fix&limit=50")
SLUG = "bench"
START = datetime(2026, 1, 1, tzinfo=UTC)
VERBS = ("fix", "read", "search", "list", "rename", "test", "move", "parse", "write", "undo")
NOUNS = ("totals", "rounding", "header", "parser", "cache", "index", "queue", "token", "schema", "date", "path", "lock")
SAMPLE_COLUMNS = (
    *("id", "project_id", "run_id", "kind", "status", "bucket", "score", "score_key", "flags", "priority", "source"),
    *("repo", "instance_id", "action_style", "model", "axes", "preview", "version", "decided_by_id", "decided_at"),
    *("leak_cleared", "created_at"),
)


def other_columns() -> dict[str, bool | int | str]:
    """The columns that `sample_values` leaves out, with the value of a new row: a new field needs no line here."""
    fields = [f for f in Sample._meta.concrete_fields if f.column not in SAMPLE_COLUMNS and not f.null]
    return {str(field.column): field.get_default() for field in fields}


def text_of(draw: random.Random, number: int) -> str:
    """About 400 characters: words that stand everywhere, some in one of a hundred, one that stands once."""
    words = [draw.choice(VERBS) if n % 2 else draw.choice(NOUNS) for n in range(40)]
    words += [f"func{draw.randrange(20_000)}" for _ in range(8)] + [f"unique{number}"]
    if number % 97 == 0:
        words.append("seldom")
    return "The agent reads src/" + "/".join(words[:3]) + ".py and " + " ".join(words)


def sample_values(draw: random.Random, number: int, project: Project, runs: list[int], users: list[int]) -> Values:
    score = None if number % 50 == 0 else round(min(100.0, max(0.0, draw.gauss(68, 14))), 2)
    bucket = "unparsed" if score is None else "final" if score >= 80 else "refined" if score >= 66 else "defeat"
    status = draw.choices(["pending", "approved", "rejected", "needs_refine"], [85, 9, 5, 1])[0]
    trajectory = number % 25 == 0
    return (
        *(number, project.pk, runs[number * len(runs) // 1_100_000], "trajectory" if trajectory else "turn", status),
        *(bucket, score, -1.0 if score is None else score, draw.choices([0, 1, 2, 4, 8, 3], [80, 6, 8, 3, 2, 1])[0]),
        1000.0 if score is None else round(min(abs(score - 80), abs(score - 66)) - 10 * draw.random(), 4),
        f"source-{int(draw.paretovariate(0.7)) % 300}.jsonl",
        f"org/repo-{int(draw.paretovariate(0.5)) % 2000}",
        f"org__repo-{draw.randrange(60_000)}",
        draw.choices(["read", "search", "edit", "test", "run", "other"], [40, 25, 20, 10, 4.99, 0.01])[0],
        draw.choices(["model-a", "model-b", "model-c", "model-rare"], [60, 30, 9.9, 0.1])[0],
        f'{{"task": "{draw.choice(VERBS)}", "difficulty": "{draw.randrange(1, 6)}"}}' if trajectory else "{}",
        f"THOUGHT: I {draw.choice(VERBS)} the {draw.choice(NOUNS)} first, then go on",
        1,
        None if status == "pending" else draw.choice(users),
        None if status == "pending" else START + timedelta(seconds=number),
        False,
        START + timedelta(seconds=number),
    )


def fill(rows: int) -> tuple[Project, User]:
    """The project with its rows; made once per database."""
    call_command("migrate", verbosity=0)
    found = Project.objects.filter(slug=SLUG).first()
    if found is not None and Sample.objects.of(found).order_by("-id").values_list("pk", flat=True).first() == rows:
        return found, User.objects.get(username="bench")
    if Sample.objects.exists():
        sys.exit("This database holds other samples. Name an empty one.")
    project = Project.objects.create(slug=SLUG, name="Benchmark")
    users = [User.objects.create_user(name) for name in ("bench", "ada", "bob", "eve", "joe")]
    for user in users:
        Member.objects.create(project=project, user=user, role=Role.ADMIN)
    runs = [Run.objects.create(project=project, kind="duel").pk for _ in range(30)]
    draw = random.Random(7)
    began = time.perf_counter()
    others, rest = [user.pk for user in users[1:]], other_columns()
    for first in range(1, rows + 1, 20_000):
        numbers = range(first, min(first + 20_000, rows + 1))
        with transaction.atomic():
            values = [(*sample_values(draw, n, project, runs, others), *rest.values()) for n in numbers]
            insert("samples_sample", (*SAMPLE_COLUMNS, *rest), values)
            insert("samples_sampletext", ("sample_id", "body"), [(n, text_of(draw, n)) for n in numbers])
        if numbers[-1] % 100_000 == 0:
            print(f"{numbers[-1]:>9,} rows, {numbers[-1] / (time.perf_counter() - began):,.0f}/s", flush=True)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT setval(pg_get_serial_sequence('samples_sample', 'id'), %s)", [rows])
            cursor.execute("VACUUM ANALYZE")
    return project, users[0]


def insert(table: str, columns: tuple[str, ...], rows: Sequence[Values]) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            places = ", ".join(["%s"] * len(columns))
            cursor.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)  # noqa: S608


FILTERS = (
    *("bucket=final", "bucket=defeat", "bucket=unparsed", "bucket=final,refined", "status=pending", "status=approved"),
    *(
        "status=needs_refine",
        "status=approved,rejected",
        "kind=turn",
        "kind=trajectory",
        "flags=leak",
        "flags=truncated",
    ),
    *(
        "flags=leak&flags=flip",
        "flags=infra",
        "model=model-a",
        "model=model-rare",
        "source=source-1.jsonl",
        "source=source-250.jsonl",
    ),
    *("repo=org/repo-1", "repo=org/repo-1500", "action_style=read", "action_style=other", "instance_id=org__repo-77"),
    *("reviewer=ada", "run={run}", "axes=task=fix", "axes=task=absent", "axes=difficulty=1,difficulty=2"),
    *(
        "score_min=66&score_max=80",
        "score_min=99.5",
        "score_max=1",
        "created_after=2026-01-10",
        "created_before=2026-01-02",
    ),
    *("created_after=2026-01-12T13:00:00Z", "text=fix", "text=seldom", "text=unique77777", "text=absentword"),
    *('text="fix totals"', "text=func1", "text=fu", "text=fix seldom", "text=fix -seldom", "text=-fix"),
)
COMBINED = (
    *(
        "bucket=refined&status=pending",
        "bucket=refined&status=pending&flags=flip&model=model-b",
        "text=fix&bucket=final",
    ),
    *(
        "text=seldom&status=approved",
        "status=needs_refine&bucket=unparsed&repo=org/repo-3",
        "reviewer=ada&bucket=defeat",
    ),
)


def cases(project: Project) -> Iterator[tuple[str, str, str, str | None]]:
    """(name, query, sort, cursor): every order first and deep, every filter in three orders."""
    rows = Sample.objects.of(project)
    for sort in SampleList.sorts:
        column = SampleList(sort=sort).order()
        field = column.removeprefix("-")
        total = Sample.objects.of(project).order_by("-id").values_list("pk", flat=True).first() or 1
        last = rows.get(pk=total // 2 + 1)
        value = getattr(last, field)
        cursor = encode_cursor(column, value.isoformat() if isinstance(value, datetime) else value, last.pk)
        yield "no filter, first", "", sort, None
        yield "no filter, deep", "", sort, cursor
    for query in (*FILTERS, *COMBINED):
        for sort in ("-id", "-score", "priority"):
            yield query, query, sort, None


def measure(call: Callable[[], object], times: int) -> tuple[float, float, float]:
    """p50 and p95 of the time that passed, and p50 of this process's own: a busy machine or a slow list?"""
    took, own = [], []
    call()
    for _ in range(times):
        began, began_own = time.perf_counter(), time.process_time()
        call()
        took.append(1000 * (time.perf_counter() - began))
        own.append(1000 * (time.process_time() - began_own))
        if sum(took) > 5_000:
            break
    return statistics.median(took), sorted(took)[max(0, -(-95 * len(took) // 100) - 1)], statistics.median(own)


def show(
    name: str, sort: str, figures: tuple[float, float, float], found: object = "", *, own_most: float | None = None
) -> bool:
    p50, p95, own = figures
    slow = p95 >= LIMIT_MS if own_most is None else own > own_most
    mark = "SLOW" if slow else ""
    print(f"{name:<62} {sort:<12} {p50:>9.2f} {p95:>9.2f} {own:>9.2f} {found:>6} {mark}", flush=True)
    return slow


def write_rate(project: Project, run: int) -> None:
    """What scoring stages pay for a row and its text, 500 at a time; the rows are taken back."""
    draw = random.Random(8)
    rows = [
        SampleRow(project.pk, run, None, SampleKind.TURN, 70.0, "refined", 0, 4.0, "s", "r", f"i-{n}", "read",
                  "model-a", "p", text_of(draw, n))
        for n in range(5_000)
    ]  # fmt: skip
    began = time.perf_counter()
    with transaction.atomic():
        for first in range(0, len(rows), 500):
            upsert_samples(rows[first : first + 500])
        took = time.perf_counter() - began
        transaction.set_rollback(True)
    print(f"upsert_samples: {len(rows) / took:,.0f} new rows/s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--only", default="", help="Only cases whose name holds this.")
    given = parser.parse_args()
    project, user = fill(given.rows)
    run = Run.objects.of(project).order_by("id")[3].pk
    print(
        f"\n{given.rows:,} samples on {connection.vendor}\n{'page of 50':<62} {'sort':<12} "
        f"{'p50 ms':>9} {'p95 ms':>9} {'own p50':>9} {'rows':>6}"
    )
    slow = 0
    for name, query, sort, cursor in cases(project):
        if given.only and given.only not in name:
            continue
        wanted = QueryDict(query.format(run=run).replace("+", "%2B"))
        params = SampleList.from_query(wanted).model_copy(update={"sort": sort, "cursor": cursor})

        def page(params: SampleList = params) -> int:
            return len(sample_page(project, params).rows)

        slow += show(name, sort, measure(page, given.times), page())
    client = Client(HTTP_HOST="localhost")
    client.force_login(user)
    # As gunicorn.conf.py does: the collector of garbage need not look at the program.
    gc.collect()
    gc.freeze()
    for path in (*(f"/p/{SLUG}/{page}" for page in PAGES), *(f"/api/v1/projects/{SLUG}/{call}" for call in CALLS)):
        if given.only in f"GET {path}":
            get = partial(client.get, path)
            most = PAGES_MS[path.split("/")[1]]
            slow += show(f"GET {path}", "", measure(get, given.times), get().status_code, own_most=most)
    if not given.only:
        write_rate(project, run)
    print(f"{slow} too slow")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
