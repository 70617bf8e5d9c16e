from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field

from curation.evaluations.contamination.schemas import ContaminationOut, Position
from curation.evaluations.live.mismatches import mismatches_of
from curation.evaluations.live.notes import live_notes
from curation.evaluations.live.schemas import LiveScoreOut, MismatchOut
from curation.evaluations.missing import missing_notes
from curation.evaluations.models import ContaminationCheck, Evaluation, EvaluationKind
from curation.evaluations.params import EvaluateParams
from curation.evaluations.screen.conclusions import ConclusionOut, conclusions_of
from curation.evaluations.screen.figures import ScreenFigures
from curation.evaluations.splits.schemas import SplitRef, split_ref
from curation.web.schemas import Id, NotEmpty, Out

Json = dict[str, Any]


class EvaluationIn(EvaluateParams):
    """The parameters of a run of kind `evaluate`; `budget` in US dollars."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"kind": "static", "models": ["base", "tuned"], "split": "3", "family": "aws", "max_per_combo": 3}
            ]
        },
    )

    budget: Annotated[str, Field(max_length=20)] | None = Field(None, examples=["2.00"])


class ScoreOut(Schema):
    """Shares with two decimals; mean `lat` in seconds and `len` in characters; `intervals`: Wilson, 95 %. Figures are
    null without answers."""

    rank: int
    model: str = Field(examples=["tuned"])
    n: int
    errors: int
    fmt: float | None
    xtr: float | None
    exact: float | None = Field(examples=[0.41])
    svc: float | None
    op_token: float | None
    service_and_op: float | None
    exact_shell: float | None
    lat: float | None
    len: float | None
    cut: int = Field(description="Answers that the token limit ended.")
    rows_missing: int | None = Field(0, description="Rows of the launch without a result; null in a part of the rows.")
    incomplete: bool = Field(False, description="Rows are missing: no figure equals that of another model.")
    intervals: dict[str, list[float]]


class TierOut(Schema):
    tier: str
    rows: list[ScoreOut | LiveScoreOut]


class SourceOut(Schema):
    source: str
    rows: list[ScoreOut]


class EvaluationOut(Schema):
    """`contamination` is the newest check of the split; `clean` and `contaminated` are the scores of those rows.
    While the check is `incomplete`, `clean` rows are those without a match."""

    id: str
    project: str
    run: str
    kind: str
    state: str
    split: SplitRef | None
    family: str
    params: Json
    models: list[Json]
    created_at: datetime
    contamination: ContaminationOut | None
    rows: list[ScoreOut | LiveScoreOut]
    by_tier: list[TierOut]
    by_source: list[SourceOut]
    clean: list[ScoreOut] | None
    contaminated: list[ScoreOut] | None
    mismatches: list[MismatchOut] = Field(description="The first live episodes of another task than the one asked for.")
    notes: list[str] = Field(
        description="What to know before the figures are read, such as rewards earned by stalling."
    )
    conclusions: list[ConclusionOut] = Field(description="Of a static screen, one for each model.")


class EvaluationBrief(Schema):
    id: str
    run: str
    kind: str
    state: str
    split: SplitRef | None
    family: str
    models: list[str]
    rows: list[ScoreOut | LiveScoreOut]
    regressed: list[str] = Field(description="Models that became worse than the split's baseline.")
    created_at: datetime


class ScreenedOut(Out):
    """One answer. `mark`: exact ✓, differs ~, none ✗."""

    id: Id
    model: str = Field(validation_alias="by.name")
    row: Id = Field(validation_alias="row_id")
    number: Position = Field(
        validation_alias="row.number", description="The row's position in the split's file, from 1."
    )
    task_id: NotEmpty = Field(validation_alias="row.task_id")
    tier: NotEmpty = Field(validation_alias="row.tier")
    source: NotEmpty = Field(validation_alias="row.source")
    mark: Literal["exact", "differs", "none"]
    completion: str = Field(validation_alias="text.completion")
    extracted: str = Field(validation_alias="text.extracted")
    expected: str = Field(validation_alias="row.text.expected")
    error: NotEmpty = Field(validation_alias="text.error")
    cut: bool
    latency_ms: int
    length: int
    fmt: bool
    xtr: bool
    exact: bool
    svc: bool
    op_token: bool
    service_and_op: bool
    exact_shell: bool


def evaluation_out(evaluation: Evaluation, figures: ScreenFigures, check: ContaminationCheck | None) -> Json:
    """Needs `project`, `run` and `split`."""
    live = evaluation.kind == EvaluationKind.LIVE
    return {
        **_head(evaluation),
        "project": evaluation.project.slug,
        "params": evaluation.params,
        "models": [
            {"name": model.name, "model": model.model, "params": model.call_params}
            for model in evaluation.models.order_by("place")
        ],
        "contamination": ContaminationOut.model_validate(check) if check else None,
        "rows": figures.rows,
        "by_tier": [{"tier": tier, "rows": rows} for tier, rows in figures.tiers.items()],
        "by_source": [{"source": source, "rows": rows} for source, rows in figures.sources.items()],
        "clean": figures.clean,
        "contaminated": figures.contaminated,
        "mismatches": mismatches_of(evaluation) if live else [],
        "notes": [*missing_notes(evaluation, figures.rows), *(live_notes(evaluation, figures.rows) if live else [])],
        "conclusions": conclusions_of(evaluation, figures.rows),
    }


def evaluation_brief(evaluation: Evaluation) -> Json:
    models = list(evaluation.models.all())
    return {
        **_head(evaluation),
        "models": [model.name for model in sorted(models, key=lambda model: model.place)],
        "rows": [model.figures for model in models if model.figures],
        "regressed": [model.name for model in models if model.regressed],
    }


def _head(evaluation: Evaluation) -> Json:
    return {
        "id": str(evaluation.pk),
        "run": str(evaluation.run_id),
        "kind": evaluation.kind,
        "state": evaluation.state.value,
        "split": split_ref(evaluation.split),
        "family": evaluation.family.get("name", ""),
        "created_at": evaluation.created_at,
    }
