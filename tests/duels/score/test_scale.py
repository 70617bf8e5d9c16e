"""The number of queries grows with batches, not with items."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from curation.runs.kinds import stages_of
from curation.runs.models import Item, Run
from tests.duels.running import Models, make_arena, run_to_end

pytestmark = pytest.mark.django_db(transaction=True)


class Worker:
    """The part of a worker that stages without model calls use."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def checkpoint(self) -> None:
        """Nobody stops this run."""


def queries(work: Callable[..., object], *args: object) -> int:
    with CaptureQueriesContext(connection) as seen:
        work(*args)
    return len(seen)


def queries_of(stage: Any, run: Run) -> dict[str, int]:
    """Return the queries of each step of a stage, planned and repeated in this thread."""
    items = list(Item.objects.filter(run=run, stage=stage.name))
    found = {f"{stage.name} plan": queries(lambda: list(stage.plan(run)))}
    if stage.queue == "llm":
        return found | {f"{stage.name} load": queries(stage.load, run, items)}
    # The write runs inside the transaction that ends the item.
    return found | {f"{stage.name} work": queries(transaction.atomic(lambda: stage.work(Worker(run), items[0])()))}


def test_no_stage_queries_row_by_row(models: Models) -> None:
    seen = []
    for prompts in (3, 9):
        project, _ = make_arena(prompts=prompts)
        run = run_to_end(project)
        assert run.result["done"] == prompts
        counts: dict[str, int] = {}
        for stage in stages_of(run):
            counts |= queries_of(stage, run)
        seen.append(counts)
    assert seen[0] == seen[1]
    assert len(seen[0]) == 10 and max(seen[0].values()) <= 30, seen[0]
