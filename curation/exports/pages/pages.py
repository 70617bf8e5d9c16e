"""What the pages of exports show, computed here since templates compute nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.core.files.storage import default_storage
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.safestring import SafeString

from curation.exports.files.archive import NAME as ARCHIVE
from curation.exports.files.balance import ending_shares
from curation.exports.files.write import CARD, MANIFEST
from curation.exports.models import Export
from curation.exports.pages.preview import Preview
from curation.exports.rows.skip_reasons import Reason
from curation.projects.models import Project
from curation.projects.settings.guidelines import guidelines_html
from curation.runs.models import LIVE

READ_AT_MOST = 400_000


@dataclass(frozen=True, slots=True)
class FileLine:
    name: str
    rows: int | None
    size: str
    sha256: str
    url: str


@dataclass(frozen=True, slots=True)
class ReasonLine:
    """`samples` are the first few left out for it, with their pages."""

    code: str
    sentence: str
    count: int
    samples: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class RowsLine:
    format: str
    cells: list[int]


@dataclass(frozen=True, slots=True)
class EndingLine:
    """A terminal, or a task in which there is nothing to do or no way on."""

    name: str
    share: str


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts of a preview or of a finished export, as a table of rows and a table of reasons."""

    samples: int
    exported: int
    splits: list[str]
    rows: list[RowsLine]
    reasons: list[ReasonLine]
    size: str = ""
    note: str = ""
    endings: list[EndingLine] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ListLine:
    """An export in the list."""

    export: Export
    rows: int
    size: str


@dataclass(frozen=True, slots=True)
class ExportPage:
    export: Export
    live: bool
    written: int
    total: int | None
    counted: Counted | None
    files: list[FileLine] = field(default_factory=list)
    archive_url: str = ""
    card: SafeString | None = None
    manifest: str = ""


def list_line(export: Export) -> ListLine:
    files = list(export.files.all())
    size = filesizeformat(sum(file.bytes for file in files)) if files else ""
    return ListLine(export, sum(file.rows for file in files if file.format), size)


def export_page(export: Export) -> ExportPage:
    """Progress while the run is under way; files, counts, card and manifest once they are written."""
    live = export.run.state in LIVE
    if not export.ready:
        total = export.counts.get("samples")
        return ExportPage(export, live, int(export.counts.get("written", 0)), total, None)
    counts = export.counts
    counted = _counted(
        export.project,
        counts["samples"],
        counts["exported"],
        counts["rows"],
        counts["excluded"],
        export.examples,
        counts.get("balance"),
        counts.get("warnings", []),
    )
    files = [
        FileLine(
            f.name,
            f.rows if f.name.endswith((".jsonl", ".gz")) else None,
            filesizeformat(f.bytes),
            f.sha256,
            file_url(export, f.name),
        )
        for f in export.files.all()
    ]
    card = guidelines_html(_text(export, CARD).partition("\n---\n")[2])
    return ExportPage(export, live, 0, None, counted, files, file_url(export, ARCHIVE), card, _text(export, MANIFEST))


def preview_page(project: Project, found: Preview) -> Counted:
    note = ""
    if not found.exact:
        note = f"Rows and reasons are of the first {found.checked:,} of {found.approved:,} approved samples."
    size = filesizeformat(found.bytes)
    return _counted(
        project,
        found.samples,
        found.exported,
        found.rows,
        found.excluded,
        found.examples,
        found.balance,
        found.warnings,
        size=size,
        note=note,
    )


def file_url(export: Export, name: str) -> str:
    return reverse("api:export-file", args=[export.pk, name])


def _counted(
    project: Project,
    samples: int,
    exported: int,
    rows: Mapping[str, Mapping[str, int]],
    excluded: Mapping[str, int],
    examples: Mapping[str, list[str]],
    balance: Mapping[str, object] | None,
    warnings: list[str],
    *,
    size: str = "",
    note: str = "",
) -> Counted:
    splits = list(next(iter(rows.values()), {}))
    lines = [RowsLine(name, [cells[split] for split in splits]) for name, cells in rows.items()]
    reasons = [
        ReasonLine(
            code,
            Reason(code).label,
            count,
            [(pk, reverse("sample-page", args=[project.slug, pk])) for pk in examples.get(code, [])],
        )
        for code, count in excluded.items()
    ]
    endings = [EndingLine(name, f"{share:.1%}") for name, share in ending_shares(balance)] if balance else []
    return Counted(samples, exported, splits, lines, reasons, size, note, endings, warnings)


def _text(export: Export, name: str) -> str:
    file = export.files.filter(name=name).first()
    if file is None or not default_storage.exists(file.stored_as):
        return ""
    with default_storage.open(file.stored_as) as opened:
        return str(opened.read(READ_AT_MOST).decode("utf-8", "replace"))
