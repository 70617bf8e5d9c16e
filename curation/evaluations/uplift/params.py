"""The parameters of an uplift experiment, and its arms: the rows to train on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from curation.evaluations.contamination.training import TRAIN
from curation.exports.models import Export, ExportFile
from curation.exports.recipes.recipe import resolve_recipe
from curation.projects.models import Project
from curation.runs.kinds import kind_of
from curation.runs.launch import check_launch
from curation.runs.models import Run
from curation.web.ids import find_param
from curation.web.problems import FieldError, Invalid
from curation.web.refusals import all_checks
from curation.web.schemas import StrictModel
from curation.web.text.figures import counted

# The formats whose rows are trained on: the first one that the export has.
FORMATS = ("sft-prompt-completion", "sft-messages")
# A saved recipe instead of an export, which is made at the launch.
RECIPE = "recipe/"
SIDES = ("before", "after")
# The ids of the exports by side, in the run's result.
EXPORTS = "exports"
# Names of trainings have 60 characters.
SHOWN_NAME = 20
Metric = Literal["exact", "exact_shell", "xtr", "svc", "op_token", "service_and_op", "fmt"]


class UpliftParams(StrictModel):
    """`before` and `after` are ids of exports, or `recipe/` with the name of a saved recipe, of which the launch makes
    an export. `split` is the id of the split that all models answer."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    before: str = Field(description="The export or recipe to compare with, such as all rows.", examples=["11"])
    after: str = Field(
        description="The export or recipe whose gain is measured.",
        examples=["recipe/good"],
    )
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


def recipe_in(given: str) -> str:
    """Return the name of the saved recipe that is given instead of an export, or an empty string."""
    return given.removeprefix(RECIPE) if given.startswith(RECIPE) else ""


def check_arms(project: Project, params: UpliftParams) -> None:
    """Raise `Invalid` for rows that cannot be trained on. The rows of a recipe are not known before its export."""
    with all_checks() as check:
        with check():
            if params.before == params.after:
                raise Invalid.at("params.after", "Choose two exports or recipes.")
        for side in SIDES:
            given = getattr(params, side)
            with check():
                if name := recipe_in(given):
                    _check_recipe(project, name, f"params.{side}")
                else:
                    _arm(project, given, side)


def arms_of(run: Run, params: UpliftParams) -> list[Arm]:
    """Return the arms: that of `before`, of `after`, and of the larger export cut to the other's size. Raises
    `Invalid`."""
    made = run.result[EXPORTS]
    before, after = (_arm(run.project, made[side], side) for side in SIDES)
    arms = [before, after]
    if params.equal_rows and before.total != after.total:
        larger, rows = max(before, after, key=lambda arm: arm.total), min(before.total, after.total)
        arms.append(Arm(f"{larger.name}, {counted(rows, 'row')}", larger.files, larger.total, rows))
    return arms


def _arm(project: Project, given: str, side: str) -> Arm:
    export = find_param(Export.objects.of(project).filter(ready=True), given, "export", f"params.{side}")
    name = f"{export.recipe_name[:SHOWN_NAME]} (export {export.pk})" if export.recipe_name else f"export {export.pk}"
    for form in FORMATS:
        files = tuple(file for file in export.files.all() if file.format == form and file.split == TRAIN and file.rows)
        if files:
            return Arm(name, files, sum(file.rows for file in files))
    raise _untrainable(f"Export {export.pk}", f"params.{side}")


def _check_recipe(project: Project, name: str, path: str) -> None:
    try:
        check_launch(project=project, kind=kind_of("export"), params={"recipe": name})
    except Invalid as refused:
        raise Invalid.at(path, f"The recipe {name!r} cannot be exported: {refused.detail}") from None
    recipe = resolve_recipe(project, name)
    if not recipe.splits.get(TRAIN) or not set(recipe.formats) & set(FORMATS):
        raise _untrainable(f"The recipe {name!r}", path)


def _untrainable(what: str, path: str) -> Invalid:
    reason = f"{what} has no rows of the split `{TRAIN}` in {' or '.join(FORMATS)}."
    return Invalid(reason, errors=[FieldError(path, "has no rows to train on")])


def trainings(params: UpliftParams, arms: list[Arm]) -> Iterator[tuple[int, Arm, int]]:
    """Yield the place of each model, its arm and its seed, seed by seed."""
    for number in range(params.seeds):
        for place, arm in enumerate(arms):
            yield place * params.seeds + number, arm, params.seed + number
