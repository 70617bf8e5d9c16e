"""A run as every call answers it (`GET /runs/{id}`, and the 202 of whatever starts one)."""

from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

from curation.runs.models import Run


class RunOut(Schema):
    """`result` names what is being made from the start and holds the figures at the end."""

    id: str = Field(examples=["97"])
    kind: str = Field(examples=["import"])
    state: str = Field(examples=["queued"], description="queued, running, succeeded, failed or cancelled")
    params: dict[str, Any]
    items: dict[str, int] = Field(examples=[{"total": 1, "done": 0, "failed": 0, "skipped": 0}])
    tokens_in: int
    tokens_out: int
    cost: str | None = Field(examples=["0"], description="US dollars of the calls whose price is known.")
    cost_unknown_calls: int
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    result: dict[str, Any]


def run_out(run: Run) -> dict[str, object]:
    """`cost` is null where calls were made and the price of none of them is known."""
    unknown = run.cost_unknown_calls > 0 and run.cost == 0
    return {
        "id": str(run.pk),
        "kind": run.kind,
        "state": run.state,
        "params": run.params,
        "items": {
            "total": run.items_total,
            "done": run.items_done,
            "failed": run.items_failed,
            "skipped": run.items_skipped,
        },
        "tokens_in": run.tokens_in,
        "tokens_out": run.tokens_out,
        "cost": None if unknown else f"{run.cost.normalize():f}" if run.cost else "0",
        "cost_unknown_calls": run.cost_unknown_calls,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "error": run.error or None,
        "result": run.result,
    }
