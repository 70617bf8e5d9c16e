from datetime import datetime
from typing import Any

from pydantic import Field

from curation.exports.rounds.figures import RoundFigures
from curation.scenarios.pages.schemas import MeasuredOut, measured_out
from curation.web.schemas import Id, Out, Strict


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


class RoundOut(Out):
    id: Id = Field(validation_alias="round.id")
    chain: Id = Field(validation_alias="round.chain", description="Id of the first round; the next ones have the same.")
    number: int = Field(validation_alias="round.number", examples=[1])
    operator: str = Field(validation_alias="round.operator")
    run: Id = Field(validation_alias="round.rollout_id", description="The rollout.")
    export: Id | None = Field(validation_alias="round.export_id")
    state: str = Field(
        validation_alias="progress.state",
        examples=["review"],
        description="rollout, review, nothing, ready, export, done or failed",
    )
    says: str = Field(
        validation_alias="progress.says", examples=["Waiting for review: 3 of 8 kept trajectories are undecided."]
    )
    kept: int = Field(validation_alias="progress.kept", description="Trajectories.")
    approved: int = Field(validation_alias="progress.approved")
    pending: int = Field(validation_alias="progress.pending")
    rate: MeasuredOut = Field(description="The kept rate.")
    by_axis: list[AxisRateOut]
    scenarios_solved: int = Field(validation_alias="solved")
    new_scenarios_solved: int = Field(
        validation_alias="new", description="Those that no earlier round of the chain solved."
    )
    rows: int = Field(description="Rows in the files of its export.")
    created_at: datetime = Field(validation_alias="round.created_at")

    @staticmethod
    def resolve_rate(found: RoundFigures) -> dict[str, object]:
        return measured_out(found.rate)

    @staticmethod
    def resolve_by_axis(found: RoundFigures) -> list[dict[str, object]]:
        rates = sorted(found.by_axis.items())
        return [{"axis": axis, "value": value, **measured_out(rate)} for (axis, value), rate in rates]
