"""What duels take in: agent turns and pull-request records; and the run kind `prompts`, an import of turns."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from curation.duels.imports.records import PullRequestKind
from curation.duels.imports.turns import TurnKind
from curation.imports import row_kinds as imports
from curation.imports.kinds import ImportParams, ImportStage, check
from curation.projects.models import Project
from curation.runs.kinds import Estimate, Json, Kind, Stage, register
from curation.runs.models import Run


class PromptsParams(BaseModel):
    """A source of turns and how to sample it."""

    model_config = ConfigDict(extra="forbid")

    source: str = Field("", max_length=2000, description="https://, hf://, s3:// or an allowed path.")
    upload: str = Field("", max_length=300)
    name: str = Field("", max_length=180)
    options: dict[str, Any] = Field(default_factory=dict)
    strict: bool = False

    def as_import(self) -> ImportParams:
        return ImportParams(kind=TurnKind.name, **self.model_dump())


def _stages(params: PromptsParams) -> Sequence[Stage]:
    return [ImportStage(params.as_import())]


def _check(project: Project, params: PromptsParams) -> None:
    check(project, params.as_import())


def _estimate(project: Project, params: PromptsParams) -> Estimate:
    return Estimate(items=1)


def _begin(run: Run) -> Json:
    return {"kind": TurnKind.name, "rows": 0, "bad_rows": 0, "prompts": 0, "duplicates": 0}


PROMPTS = Kind(
    "prompts",
    "Prompts from a source of turns",
    params=PromptsParams,
    stages=_stages,
    check=_check,
    estimate=_estimate,
    begin=_begin,
)


def register_imports() -> None:
    imports.register(TurnKind())
    imports.register(PullRequestKind())
    register(PROMPTS)
