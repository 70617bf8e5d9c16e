"""Rounds as the REST API answers them."""

from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

from curation.exports.rounds.figures import RoundFigures
from curation.scenarios.pages.schemas import MeasuredOut, measured_out
from curation.web.lists.params import ListParams
from curation.web.schemas import Strict


class RoundList(ListParams):
    """The parameters of the list of rounds."""


class RoundIn(Strict):
    """The first round of a chain, or with `before` the next round of its chain."""

    operator: str = Field(max_length=60, examples=["student-1"], description="Name of the endpoint.")
    before: str | None = Field(None, examples=["3"], description="Id of the round on whose export it was trained.")
    rollout: dict[str, Any] = Field(
        {}, examples=[{"samples": 3, "max_turns": 30}], description="Parameters of the rollout; not with `before`."
    )
    formats: list[str] = Field(["sft-messages"], description="Formats of the export; not with `before`.")


class RoundExportIn(Strict):
    without_pending: bool = Field(False, examples=[True], description="Export now, without the undecided trajectories.")


class AxisRateOut(MeasuredOut):
    axis: str = Field(examples=["task"])
    value: str = Field(examples=["cleanup"])


class RoundOut(Schema):
    id: str
    chain: str = Field(description="Id of the first round; the next ones have the same.")
    number: int = Field(examples=[1])
    operator: str
    run: str = Field(description="The rollout.")
    export: str | None
    state: str = Field(examples=["review"], description="rollout, review, nothing, ready, export, done or failed")
    says: str = Field(examples=["Waiting for review: 3 of 8 kept trajectories are undecided."])
    kept: int = Field(description="Trajectories.")
    approved: int
    pending: int
    rate: MeasuredOut = Field(description="The kept rate.")
    by_axis: list[AxisRateOut]
    scenarios_solved: int
    new_scenarios_solved: int = Field(description="Those that no earlier round of the chain solved.")
    rows: int = Field(description="Rows in the files of its export.")
    created_at: datetime


def round_out(found: RoundFigures) -> dict[str, object]:
    row, progress = found.round, found.progress
    return {
        "id": str(row.pk),
        "chain": str(row.chain),
        "number": row.number,
        "operator": row.operator,
        "run": str(row.rollout_id),
        "export": None if row.export_id is None else str(row.export_id),
        "state": progress.state,
        "says": progress.says,
        "kept": progress.kept,
        "approved": progress.approved,
        "pending": progress.pending,
        "rate": measured_out(found.rate),
        "by_axis": [
            {"axis": axis, "value": value, **measured_out(rate)}
            for (axis, value), rate in sorted(found.by_axis.items())
        ],
        "scenarios_solved": found.solved,
        "new_scenarios_solved": found.new,
        "rows": found.rows,
        "created_at": row.created_at,
    }
