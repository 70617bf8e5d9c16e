from datetime import datetime
from typing import Annotated, Any

from ninja import Schema
from pydantic import Field, model_validator

from curation.exports.formats.trl import LabelBalanceOut
from curation.exports.hygiene.contamination import ContaminatedSampleOut
from curation.exports.pages.compare import ExportsComparisonOut
from curation.exports.pages.preview import ExportPreview, RenderedRowOut
from curation.exports.recipes.recipe import Recipe
from curation.trajectories.rollout.balance import BalanceOut
from curation.web.lists.filters import ArchivableList, named_list
from curation.web.schemas import Id, NotEmpty, Out, StrictModel, Username

_RECIPE = {"formats": ["sft-messages", "dpo"], "filter": {"status": "approved"}, "splits": {"train": 0.9, "val": 0.1}}
_SHA = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_COUNTS: dict[str, Any] = {
    "samples": 230,
    "exported": 207,
    "rows": {"sft-messages": {"train": 186, "val": 21}, "dpo": {"train": 181, "val": 20}},
    "excluded": {"leak": 3, "draw": 6},
    "balance": {"kept": 40, "exit": 0.975, "panic": 0.025, "empty_queue": 0.1, "blocked": 0.025},
    "warnings": ["2% of 40 kept trajectories end in panic, fewer than the project's band of 5% to 50%."],
}


@named_list("exports", page="export-list")
class ExportList(ArchivableList):
    archived_column = "run__archived_at"


RecipeDocument = Annotated[
    dict[str, Any], Field(description=", ".join(f"`{name}`" for name in Recipe.model_fields) + ".", examples=[_RECIPE])
]


class ExportIn(StrictModel):
    """A recipe, or the name of a saved one."""

    recipe: RecipeDocument | str = Field(examples=[_RECIPE])


class ExportPatch(StrictModel):
    """One of the two, or both."""

    archived: bool | None = Field(None, examples=[True], description="True hides it from lists; false shows it again.")
    kept: bool | None = Field(None, examples=[True], description="True keeps it from being deleted when it is old.")

    @model_validator(mode="after")
    def one_at_least(self) -> "ExportPatch":
        if self.archived is None and self.kept is None:
            raise ValueError("give `archived` or `kept`")
        return self


class RecipeIn(StrictModel):
    name: str = Field(min_length=1, max_length=80, pattern=r"^[\w][\w .-]*$", examples=["weekly"])
    recipe: RecipeDocument


class RecipeOut(Out):
    name: str = Field(examples=["weekly"])
    recipe: RecipeDocument = Field(validation_alias="document")
    updated_at: datetime = Field(examples=["2026-01-31T09:30:00Z"])


class FileOut(Schema):
    """`bytes` and `sha256` are those of the downloaded file."""

    name: str = Field(examples=["dpo.train.jsonl"])
    format: NotEmpty = Field(examples=["dpo"])
    split: NotEmpty = Field(examples=["train"])
    rows: int = Field(examples=[181])
    bytes: int = Field(examples=[812345])
    sha256: str = Field(examples=[_SHA])


class ExportOut(Out):
    """`state` is the run's. Files, counts of rows and the manifest appear once all files are written."""

    id: Id = Field(examples=["12"])
    recipe: RecipeDocument
    recipe_name: NotEmpty = Field(examples=["weekly"])
    state: str = Field(validation_alias="run.state", examples=["succeeded"])
    counts: dict[str, Any] = Field(examples=[_COUNTS])
    files: list[FileOut]
    warnings: list[str] = Field([], validation_alias="counts.warnings", examples=[_COUNTS["warnings"]])
    manifest_sha256: NotEmpty = Field(examples=[_SHA])
    kept: bool = Field(description="A person keeps it: it is not deleted when it is old.")
    run: Id = Field(validation_alias="run_id", examples=["97"])
    created_by: Username | None = Field(validation_alias="run.created_by", examples=["demo"])
    created_at: datetime = Field(examples=["2026-01-31T09:30:00Z"])


class TemplateFailureOut(Schema):
    sample: str = Field(examples=["17"])
    format: str = Field(examples=["dpo"])
    reason: str = Field(examples=["undeclared_tool"])
    detail: str = Field(examples=["called: bash"])


class TemplateTrialOut(Schema):
    """Rows that were tried against the chat template."""

    name: str = Field(examples=["qwen3"])
    sha256: str = Field(examples=[_SHA])
    tried: int = Field(examples=[207])
    failed: dict[str, int] = Field(examples=[{"undeclared_tool": 3}], description="Rows by reason.")
    left_out: bool
    examples: list[TemplateFailureOut] = Field(description="The first rows that fail.")


class TokensOut(Schema):
    """A histogram of row lengths in tokens: `rows` has one more entry than the upper `edges`, for longer rows."""

    edges: list[int]
    rows: list[int]


class HeldOutOut(Schema):
    name: str = Field(examples=["export/12/val"])
    label: str = Field(examples=["val of export 12"])
    rows: int = Field(examples=[21])
    whole_only: int = Field(0, description="Rows that are too short for a search inside longer texts.")
    sha256: str = Field(examples=[_SHA], description="Of the rows as they were compared.")


class ExportContaminationOut(Schema):
    held_out: list[HeldOutOut]
    samples: int = Field(examples=[2], description="Samples that contain a held-out row.")
    levels: dict[str, int] = Field(
        description="By the strongest way in which each matches; without `paraphrase` if none were looked for."
    )
    left_out: bool
    embedded: int | None = Field(
        None, description="Tasks that were embedded to find paraphrases; null if none were looked for, as in a preview."
    )
    not_embedded: int | None = Field(None, description="Tasks whose paraphrases are not known.")


class ExportPreviewOut(Schema):
    """If `exact` is false, rows and reasons are those of the first `checked` approved samples."""

    samples: int = Field(examples=[230], description="Samples that match the filter.")
    approved: int = Field(examples=[216])
    checked: int = Field(examples=[216])
    exact: bool = Field(examples=[True])
    exported: int = Field(examples=[207], description="Samples that give at least one row.")
    bytes: int = Field(examples=[1_612_345], description="Size of all rows before compression.")
    rows: dict[str, dict[str, int]] = Field(examples=[_COUNTS["rows"]])
    excluded: dict[str, int] = Field(examples=[_COUNTS["excluded"]])
    examples: dict[str, list[str]] = Field(examples=[{"leak": ["17", "29", "31"]}], description="Ids of samples.")
    tokens: TokensOut
    sample_rows: list[RenderedRowOut] = Field(description="The first ten rows of each format.")
    contamination: ExportContaminationOut | None = Field(description="Null if the recipe names no held-out set.")
    contaminated: list[ContaminatedSampleOut] = Field(description="The first samples that contain a held-out row.")
    changes: ExportsComparisonOut | None = Field(description="Null if the recipe was never exported.")
    labels: dict[str, LabelBalanceOut] = Field(description="By format, of those whose rows have a label.")
    template: TemplateTrialOut | None = Field(description="Null without a chat template. A preview tries 2,000 rows.")
    balance: BalanceOut | None = Field(
        description="How the trajectories with a row end. Null if no trajectory is exported."
    )
    warnings: list[str] = Field(
        examples=[_COUNTS["warnings"]],
        description="A reason that leaves out more than a tenth of the approved samples, a format or split without"
        " rows, a share of panic outside the project's `balance`.",
    )


def preview_out(found: ExportPreview) -> dict[str, object]:
    names = ("approved", "checked", "exact", "bytes", "examples", "sample_rows", "contaminated", "changes")
    return {**found.counts, **{name: getattr(found, name) for name in names}}
