"""Request and response schemas of the exports REST calls."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, ClassVar

from ninja import Schema
from pydantic import Field

from curation.exports.models import Export, ExportFile, SavedRecipe
from curation.exports.pages.compare import Comparison
from curation.exports.pages.preview import Preview
from curation.web.lists.params import ArchivableList

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


class ExportList(ArchivableList):
    archived_column = "run__archived_at"
    sorts: ClassVar[Sequence[str]] = ("-id", "id")


RecipeDocument = Annotated[
    dict[str, Any],
    Field(
        description="`trainer`, `formats`, `filter`, `splits`, `seed`, `group_by`, `metadata`, `sources`, `max_tokens`,"
        " `reasoning`, `gzip`, `parquet`.",
        examples=[_RECIPE],
    ),
]


class ExportIn(Schema):
    """A recipe, or the name of a saved one."""

    recipe: RecipeDocument | str = Field(examples=[_RECIPE])


class RecipeIn(Schema):
    name: str = Field(min_length=1, max_length=80, pattern=r"^[\w][\w .-]*$", examples=["weekly"])
    recipe: RecipeDocument


class RecipeOut(Schema):
    name: str = Field(examples=["weekly"])
    recipe: RecipeDocument
    updated_at: datetime = Field(examples=["2026-01-31T09:30:00Z"])


class RecipeList(Schema):
    data: list[RecipeOut]
    next_cursor: str | None = None


class FileOut(Schema):
    """`bytes` and `sha256` are those of the downloaded file."""

    name: str = Field(examples=["dpo.train.jsonl"])
    format: str | None = Field(examples=["dpo"])
    split: str | None = Field(examples=["train"])
    rows: int = Field(examples=[181])
    bytes: int = Field(examples=[812345])
    sha256: str = Field(examples=[_SHA])


class ExportOut(Schema):
    """`state` is the run's. Files, counts of rows and the manifest appear once all files are written."""

    id: str = Field(examples=["12"])
    recipe: RecipeDocument
    recipe_name: str | None = Field(examples=["weekly"])
    state: str = Field(examples=["succeeded"])
    counts: dict[str, Any] = Field(examples=[_COUNTS])
    files: list[FileOut]
    warnings: list[str] = Field(examples=[_COUNTS["warnings"]])
    manifest_sha256: str | None = Field(examples=[_SHA])
    run: str = Field(examples=["97"])
    created_by: str | None = Field(examples=["demo"])
    created_at: datetime = Field(examples=["2026-01-31T09:30:00Z"])


class ExportedBalanceOut(Schema):
    """How the exported trajectories end, as shares from 0 to 1."""

    kept: int = Field(examples=[40], description="Trajectories with at least one row.")
    exit: float = Field(examples=[0.975])
    panic: float = Field(examples=[0.025])
    empty_queue: float = Field(examples=[0.1])
    blocked: float = Field(examples=[0.025])


class ExportPage(Schema):
    data: list[ExportOut]
    next_cursor: str | None
    total: int | None = None


class PartOut(Schema):
    role: str = Field(examples=["assistant"])
    text: str
    use: str = Field(examples=["learned"], description="context, learned, or rejected: to be avoided")


class RenderedRowOut(Schema):
    """A row as messages. Long messages are shortened in the middle."""

    sample: str = Field(examples=["17"])
    format: str = Field(examples=["dpo"])
    split: str = Field(examples=["train"])
    tokens: int = Field(examples=[812], description="Estimated.")
    parts: list[PartOut]


class TokensOut(Schema):
    """A histogram of row lengths in tokens: `rows` has one more entry than the upper `edges`, for longer rows."""

    edges: list[int]
    rows: list[int]


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
    balance: ExportedBalanceOut | None = Field(description="Null if no trajectory is exported.")
    warnings: list[str] = Field(
        examples=[_COUNTS["warnings"]], description="A share of panic outside the project's `balance`."
    )


class ChangedRowOut(Schema):
    sample: str = Field(examples=["17"])
    format: str = Field(examples=["dpo"])
    source: str = Field(examples=["duels"])
    pair: str = Field(examples=[""], description="The pair of trajectories that the row comes from, or empty.")
    change: str = Field(examples=["added"], description="added, removed, changed, or moved to another split.")


class ExportsComparisonOut(Schema):
    """Counts of rows by how they differ from the first export to the second, and the first 200 that do."""

    added: int = Field(examples=[12])
    removed: int = Field(examples=[1])
    changed: int = Field(examples=[3])
    moved: int = Field(examples=[0])
    same: int = Field(examples=[204])
    rows: list[ChangedRowOut]


def export_out(export: Export) -> dict[str, object]:
    user = export.run.created_by
    return {
        "id": str(export.pk),
        "recipe": export.recipe,
        "recipe_name": export.recipe_name or None,
        "state": export.run.state,
        "counts": export.counts,
        "files": [file_out(file) for file in export.files.all()],
        "warnings": export.counts.get("warnings", []),
        "manifest_sha256": export.manifest_sha256 or None,
        "run": str(export.run_id),
        "created_by": user.get_username() if user else None,
        "created_at": export.created_at,
    }


def file_out(file: ExportFile) -> dict[str, object]:
    return {
        "name": file.name,
        "format": file.format or None,
        "split": file.split or None,
        "rows": file.rows,
        "bytes": file.bytes,
        "sha256": file.sha256,
    }


def recipe_out(saved: SavedRecipe) -> dict[str, object]:
    return {"name": saved.name, "recipe": saved.document, "updated_at": saved.updated_at}


def preview_out(found: Preview) -> dict[str, object]:
    return {
        **found.counts,
        "approved": found.approved,
        "checked": found.checked,
        "exact": found.exact,
        "bytes": found.bytes,
        "examples": found.examples,
        "sample_rows": [asdict(row) for row in found.rows],
    }


def comparison_out(found: Comparison) -> dict[str, object]:
    rows = [{name: getattr(row, name) for name in ChangedRowOut.model_fields} for row in found.rows]
    figures = {name: getattr(found, name) for name in ("added", "removed", "changed", "moved", "same")}
    return {**figures, "rows": rows}
