"""Requests and responses of experiments."""

from datetime import datetime
from typing import Annotated, Any

from ninja import Schema
from pydantic import ConfigDict, Field

from curation.evaluations.experiments.card import Expectation, expectations
from curation.evaluations.experiments.change import Card
from curation.evaluations.models import EvaluatedModel, Experiment
from curation.web.http import etag

Json = dict[str, Any]


class ModelRef(Schema):
    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    evaluation: str = Field(examples=["7"])
    model: str = Field("", examples=["tuned"], description="Optional if the evaluation has one model.")


class ExperimentIn(Schema):
    """The whole card. `training` is free text or a configuration file; `expected` are changes by metric."""

    model_config = ConfigDict(
        extra="forbid",
        coerce_numbers_to_str=True,
        json_schema_extra={
            "examples": [{"name": "SFT, one epoch", "training": "lora r=8, lr 2e-4", "expected": {"exact": 0.34}}]
        },
    )

    name: str
    export: str = Field("", description="Id of an export.")
    training: str = ""
    base: ModelRef | None = None
    trained: ModelRef | None = None
    expected: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = {}

    def card(self) -> Card:
        base, trained = ((one.evaluation, one.model) if one else None for one in (self.base, self.trained))
        return Card(self.name, self.export, self.training, base, trained, self.expected)


class ExpectationOut(Schema):
    """`reached` and the comparison are null until both models were evaluated on common rows."""

    metric: str
    expected: float
    reached: bool | None
    delta: float | None
    low: float | None
    high: float | None
    said: str | None


class ExperimentOut(Schema):
    id: str
    name: str
    export: str | None
    manifest_sha256: str | None = Field(description="Of the export that was trained on; stays if that is deleted.")
    training: str
    base: Json | None
    trained: Json | None
    expectations: list[ExpectationOut]
    problem: str | None = Field(description="Why the expectations cannot be checked.")
    created_at: datetime


def experiment_out(experiment: Experiment) -> Json:
    """Needs the models with their evaluations."""
    found, problem = expectations(experiment)
    return {
        "id": str(experiment.pk),
        "name": experiment.name,
        "export": None if experiment.export_id is None else str(experiment.export_id),
        "manifest_sha256": experiment.manifest_sha256 or None,
        "training": experiment.training,
        "base": _model(experiment.base),
        "trained": _model(experiment.trained),
        "expectations": [_expectation(one) for one in found],
        "problem": problem or None,
        "created_at": experiment.created_at,
    }


def version_of(experiment: Experiment) -> str:
    """Return what changes with anything that the card shows."""
    return etag.version_of(experiment_out(experiment))


def _model(model: EvaluatedModel | None) -> Json | None:
    return {"evaluation": str(model.evaluation_id), "model": model.name} if model else None


def _expectation(one: Expectation) -> Json:
    change = one.change.change if one.change else None
    return {
        "metric": one.metric,
        "expected": one.expected,
        "reached": one.reached,
        "delta": round(change.delta, 4) + 0.0 if change else None,
        "low": round(change.interval.low, 4) + 0.0 if change else None,
        "high": round(change.interval.high, 4) + 0.0 if change else None,
        "said": one.change.verdict if one.change else None,
    }
