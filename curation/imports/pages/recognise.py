"""Tell from the first rows of a source which kinds of import can read them."""

from collections.abc import Sequence

from pydantic import Field

from curation.imports.row_kinds import AnyKind, import_kind, import_kinds
from curation.imports.sources.rows import BadRow, RowRefused, SourceRow
from curation.projects.models import Project
from curation.runs.kinds import Json
from curation.web.problems import Invalid
from curation.web.schemas import out
from curation.web.text.figures import counted


@out
class RecognisedOut:
    """A kind that can read `rows` of the rows that were tried."""

    kind: str = Field(examples=["turns"])
    title: str = Field(examples=["Agent turns"])
    rows: int = Field(examples=[100], description="Rows of those read that this kind can import.")
    marked: bool = Field(description="The rows have columns that only this kind has.")


def recognise(project: Project, rows: Sequence[SourceRow | BadRow], given: Json) -> list[RecognisedOut]:
    """The kinds that can read any of these rows with the mapping of the options, the best first."""
    claimed = [kind for kind in import_kinds() if any(isinstance(row, SourceRow) and kind.claims(row) for row in rows)]
    found = [_tried(kind, project, rows, given) for kind in claimed]
    return sorted((one for one in found if one.rows), key=lambda one: (-one.rows, not one.marked))


def choose_kind(project: Project, given: str, rows: Sequence[SourceRow | BadRow], options: Json) -> str:
    """The given kind; where it is empty, the one that fits best.

    Raises `Invalid` if other kinds read the rows and the given one reads none, if several fit equally well, or if
    none does.
    """
    found = recognise(project, rows, options)
    if given:
        wanted = import_kind(given)
        if found and not _tried(wanted, project, rows, options).rows:
            others = _named(found, " or ")
            tried = f"of the first {counted(len(rows), 'row')}" if len(rows) > 1 else "of the rows"
            _refuse(f"None {tried} can be imported as “{wanted.title}”. They can be imported as {others}: choose that.")
        return given
    if not rows:
        _refuse("The source has no rows.")
    if not found:
        _refuse(
            f"No kind of import can read the first rows. {_reasons(project, rows[0])} "
            "If these rows have other columns, choose a kind and map them."
        )
    best = [one for one in found if (one.rows, one.marked) == (found[0].rows, found[0].marked)]
    if len(best) > 1:
        _refuse(f"These rows can be imported as {_named(best, ' or as ')}. Choose one.")
    return found[0].kind


def _named(found: Sequence[RecognisedOut], between: str) -> str:
    """The titles of kinds, each with the value that names it in commands and calls."""
    return between.join(f"“{one.title}” ({one.kind})" for one in found)


def _tried(kind: AnyKind, project: Project, rows: Sequence[SourceRow | BadRow], given: Json) -> RecognisedOut:
    own = kind.of(project)
    # Other options change how rows are imported, not whether they can be read.
    mapped = "mapping" in own.options.model_fields and given.get("mapping")
    options = own.read_options({"mapping": mapped} if mapped else {}, project)
    readable = 0
    for row in rows:
        if isinstance(row, SourceRow):
            try:
                own.preview(row, options)
            except RowRefused:
                continue
            readable += 1
    columns = {column for row in rows if isinstance(row, SourceRow) for column in row.value}
    return RecognisedOut(kind.name, kind.title, readable, not columns.isdisjoint(kind.marks))


def _reasons(project: Project, row: SourceRow | BadRow) -> str:
    if isinstance(row, BadRow):
        return f"Row {row.offset + 1}: {row.reason}."
    reasons = []
    for kind in import_kinds():
        own = kind.of(project)
        try:
            own.preview(row, own.read_options({}, project))
        except RowRefused as refused:
            reasons.append(f"{kind.title}: {refused}")
    return f"Row {row.offset + 1}, as {'; as '.join(reasons)}."


def _refuse(detail: str) -> None:
    raise Invalid.at("kind", detail)
