"""Coverage: the number of admitted scenarios and kept trajectories per pair of values of two axes."""

from django.db.models import Count, F, Q, QuerySet
from pydantic import Field

from curation.projects.access import Access
from curation.samples.blind import reviews_blind
from curation.samples.models import SampleStatus
from curation.scenarios.models import Scenario, ScenarioAxis
from curation.scenarios.taxonomy.axes import Taxonomy, taxonomy_of
from curation.web.problems import FieldError, Problem
from curation.web.schemas import out

DECIDED = [status for status in SampleStatus if status != SampleStatus.PENDING]
Pairs = dict[tuple[str, str], int]


@out
class CellOut:
    """`admitted` counts scenarios, `kept` trajectories of scenarios with any status."""

    row: str = Field(examples=["cleanup"])
    column: str = Field(examples=["mailbox"])
    admitted: int = Field(description="Scenarios.")
    kept: int = Field(description="Trajectories.")


@out
class CoverageOut:
    """Cells row by row; pairs without any are listed with zeros. Of a group of copies only the first admitted one is
    counted, in its cell."""

    rows: str = Field(examples=["task"])
    columns: str = Field(examples=["provider"])
    cells: list[CellOut] = Field()
    admitted: int = Field()
    kept: int = Field()
    outside: int = Field(description="Admitted scenarios that lack one of the two axes.")
    copies: int = Field(description="Admitted scenarios that are not counted, because they are copies of one that is.")


def coverage(*, access: Access, rows: str = "task", columns: str = "provider") -> CoverageOut:
    """Those who review blind get the kept trajectories of decided samples only. Raises `Problem` (400) for an unknown
    axis, or the same axis twice."""
    project = access.project
    taxonomy = taxonomy_of(project.settings)
    _refuse_unknown(taxonomy, rows, columns)
    first = ScenarioAxis.objects.filter(scenario__project=project, axis=rows, scenario__axis_rows__axis=columns)
    every = Scenario.objects.of(project).admitted()
    counted = every.first_of_groups()
    admitted = _counted(first.filter(scenario__in=counted))
    shown = Q(scenario__trajectories__keep=True)
    if reviews_blind(access):  # in one filter, so that both conditions are about the same trajectory
        sample = "scenario__trajectories__sample"
        shown &= Q(**{f"{sample}__isnull": True}) | Q(**{f"{sample}__status__in": DECIDED})
    kept = _counted(first.filter(shown))
    found = {**admitted, **kept}
    row_values = _values(taxonomy, rows, [row for row, _ in found])
    column_values = _values(taxonomy, columns, [column for _, column in found])
    return CoverageOut(
        rows=rows,
        columns=columns,
        cells=[
            CellOut(row, column, admitted.get((row, column), 0), kept.get((row, column), 0))
            for row in row_values
            for column in column_values
        ],
        admitted=sum(admitted.values()),
        kept=sum(kept.values()),
        outside=counted.count() - sum(admitted.values()),
        copies=every.count() - counted.count(),
    )


def _counted(pairs: QuerySet[ScenarioAxis]) -> Pairs:
    """(row value, column value) → number of joined rows, in one query."""
    grouped = pairs.order_by().annotate(other=F("scenario__axis_rows__value")).values("value", "other")
    counted = grouped.annotate(n=Count("id")).values_list("value", "other", "n")
    return {(row, column): n for row, column, n in counted}


def _values(taxonomy: Taxonomy, axis: str, found: list[str]) -> tuple[str, ...]:
    """In the taxonomy's order; values that are no longer in it come last."""
    known = taxonomy.axes[axis].values
    return (*known, *sorted({value for value in found if value not in known}))


def _refuse_unknown(taxonomy: Taxonomy, rows: str, columns: str) -> None:
    known = ", ".join(taxonomy.axes)
    errors = [
        FieldError(name, f"{given!r} is not an axis; the axes of this project are {known}")
        for name, given in (("rows", rows), ("columns", columns))
        if given not in taxonomy.axes
    ]
    if not errors and rows == columns:
        errors = [FieldError("columns", "must be another axis than `rows`")]
    if errors:
        raise Problem.fields(errors, code="unknown_axis")
