"""The list of trajectories at 1,000,000 rows, with each filter alone.

    WINNOW_DATA=/tmp/bench python -m benchmarks.trajectories [--rows 1000000] [--times 30]

Asked for (trajectories, "Sizes and figures"): 8 ms for any single filter, by REST. Makes the rows in the database that
the environment names. Prints p50 and p95 in milliseconds and exits with 1 where a filter's p50 is longer.
"""

import argparse
import random
import sys
from functools import partial

from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client

from benchmarks.samples import measure
from curation.projects.models import Member, Project, Role
from curation.trajectories.models import KEPT, Trajectory, TrajectoryMetadata

LIMIT_MS = 8.0
BATCH = 10_000
OUTCOMES = ("solved", "failed", "failed", "checker_failed", "unknown", "error")
QUERIES = (
    *("", "agent=agent-1", "agent=rare", "agent=agent-1,agent-2", "model=model-7", "model=rare", "task=task-77"),
    *("source=jobs-3.zip", "source=rare", "outcome=solved", "outcome=failed", "outcome=error", "outcome=timeout"),
    *("reward_min=1", "reward_min=0.5", "reward_max=0", "reward_min=2", "reward_min=0.999&reward_max=0.9999"),
    *("metadata.level=hard", "metadata.seed=77", "metadata.level=rare", "metadata.level=hard,rare"),
    *("agent=agent-1&sort=id", "outcome=failed&sort=-commands"),
)


def fill(rows: int) -> tuple[Project, User]:
    call_command("migrate", verbosity=0)
    user = User.objects.create_user("bench")
    project = Project.objects.create(slug="bench", name="Benchmark")
    Member.objects.create(project=project, user=user, role=Role.ADMIN)
    draw = random.Random(7)
    for first in range(0, rows, BATCH):
        made = Trajectory.objects.bulk_create(_row(project, draw, n) for n in range(first, min(first + BATCH, rows)))
        TrajectoryMetadata.objects.bulk_create(
            TrajectoryMetadata(trajectory=row, project=project, name=name, value=value)
            for number, row in enumerate(made, first)
            for name, value in _metadata(number).items()
        )
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
    return project, user


def _row(project: Project, draw: random.Random, number: int) -> Trajectory:
    outcome = draw.choice(OUTCOMES)
    rare = number % 100_000 == 0
    return Trajectory(
        project=project,
        agent="rare" if rare else f"agent-{number % 5}",
        model="rare" if rare else f"model-{number % 20}",
        source="rare" if rare else f"jobs-{number % 300}.zip",
        task=f"task-{number // 8}",
        outcome=outcome,
        keep=outcome in KEPT,
        reward=draw.choice((0.0, 1.0, round(draw.random(), 4), None)),
        commands=draw.randrange(200),
        steps=draw.randrange(300),
    )


def _metadata(number: int) -> dict[str, str]:
    level = "rare" if number % 100_000 == 0 else ("easy", "fair", "hard")[number % 3]
    return {"level": level, "seed": str(number // 100)}


def show(name: str, figures: tuple[float, float, float], found: int) -> bool:
    slow = figures[0] > LIMIT_MS
    print(f"{name:<44}", *(f"{took:>8.2f}" for took in figures), f"{found:>5}", "SLOW" if slow else "", flush=True)
    return slow


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=30)
    given = parser.parse_args()
    _, user = fill(given.rows)
    print(f"{given.rows:,} trajectories on {connection.vendor}; milliseconds of a page of 50 by REST: p50, p95, own")
    slow = 0
    client = Client(HTTP_HOST="localhost")
    client.force_login(user)
    for query in QUERIES:
        path = f"/api/v1/projects/bench/trajectories?{query}"
        found = len(client.get(path).json()["data"])
        slow += show(f"GET ?{query}", measure(partial(client.get, path), given.times), found)
    print(f"{slow} above {LIMIT_MS:g} ms")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
