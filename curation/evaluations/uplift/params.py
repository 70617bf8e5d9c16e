"""The parameters of an uplift experiment, and its arms: what is trained on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from curation.evaluations.contamination.training import TRAIN
from curation.exports.models import Export, ExportFile
from curation.projects.models import Project
from curation.web.ids import find_param
from curation.web.problems import FieldError, Invalid
from curation.web.text.figures import counted

# The formats whose rows are trained on: the first one that the export has.
FORMATS = ("sft-prompt-completion", "sft-messages")
Metric = Literal["exact", "exact_shell", "xtr", "svc", "op_token", "service_and_op", "fmt"]


class UpliftParams(BaseModel):
    """`before` and `after` are ids of exports, `split` is the id of the split that all models answer."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    before: str = Field(description="The export to compare with, such as all rows as they came.", examples=["11"])
    after: str = Field(description="The export whose gain is measured, such as the curated rows.", examples=["12"])
    split: str = Field(description="The split that every model answers.", examples=["3"])
    seeds: Annotated[int, Field(ge=2, le=64)] = Field(3, description="Trainings on each export. Two are the fewest.")
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(1, description="The first seed.")
    equal_rows: bool = Field(
        True, description="Also train on as many rows as the smaller export has, drawn from the larger one."
    )
    trainer: Literal["small", "command"] = Field(
        "small",
        description="small: TRL on the worker, with the extra `train`. command: the server's TRAIN_COMMAND.",
    )
    settings: dict[str, str] = Field({}, description="For the trainer, such as `steps = 250`.")
    metric: Metric = Field("exact", description="The share of right answers that decides, chosen beforehand.")
    family: str = Field("aws", max_length=60, description="What the rows are about: the commands of which tool.")
    max_hours: Annotated[float, Field(gt=0, le=240)] = Field(6.0, description="Most hours of one training.")


@dataclass(frozen=True, slots=True)
class Arm:
    """An export that is trained on: its files, and how many of its rows; all if `rows` is None."""

    name: str
    files: tuple[ExportFile, ...]
    total: int
    rows: int | None = None

    @property
    def size(self) -> int:
        return self.total if self.rows is None else self.rows


def arms_of(project: Project, params: UpliftParams) -> list[Arm]:
    """Return the arms: that of `before`, of `after`, and of the larger export cut to the other's size. Raises
    `Invalid`."""
    if params.before == params.after:
        raise Invalid.at("params.after", "Choose two exports.")
    before, after = _arm(project, params.before, "before"), _arm(project, params.after, "after")
    arms = [before, after]
    if params.equal_rows and before.total != after.total:
        larger, rows = max(before, after, key=lambda arm: arm.total), min(before.total, after.total)
        arms.append(Arm(f"{larger.name}, {counted(rows, 'row')}", larger.files, larger.total, rows))
    return arms


def _arm(project: Project, given: str, name: str) -> Arm:
    export = find_param(Export.objects.of(project).filter(ready=True), given, "export", f"params.{name}")
    for form in FORMATS:
        files = tuple(file for file in export.files.all() if file.format == form and file.split == TRAIN and file.rows)
        if files:
            return Arm(f"export {export.pk}", files, sum(file.rows for file in files))
    reason = f"Export {export.pk} has no rows of the split `{TRAIN}` in {' or '.join(FORMATS)}."
    raise Invalid(reason, errors=[FieldError(f"params.{name}", "has no rows to train on")])


def trainings(params: UpliftParams, arms: list[Arm]) -> Iterator[tuple[int, Arm, int]]:
    """Yield the place of each model, its arm and its seed, seed by seed."""
    for number in range(params.seeds):
        for place, arm in enumerate(arms):
            yield place * params.seeds + number, arm, params.seed + number
