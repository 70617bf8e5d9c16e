"""The coverage heatmap: every cell with its count, shade and links to its lists."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from urllib.parse import quote

from django.http import QueryDict
from django.urls import reverse

from curation.projects.access import Access
from curation.projects.models import Project
from curation.scenarios.taxonomy.axes import taxonomy_of
from curation.scenarios.taxonomy.coverage import CellOut, CoverageOut, coverage

# Shades without the empty one; the cell always shows the number too.
SHADES = 4
SHOWN = {"admitted": "Admitted scenarios", "kept": "Kept trajectories"}


def coverage_page(access: Access, given: QueryDict) -> dict[str, object]:
    """`rows` and `columns` are the axes, `by` is the shaded count, `admitted` or `kept`. Raises `Problem`."""
    rows, columns = given.get("rows") or "task", given.get("columns") or "provider"
    by = given.get("by") if given.get("by") in SHOWN else "admitted"
    project = access.project
    found = coverage(access=access, rows=rows, columns=columns)
    axes = taxonomy_of(project.settings).axes
    most = max((_count(cell, by) for cell in found.cells), default=0)
    by_row = {row: list(cells) for row, cells in groupby(found.cells, key=attrgetter("row"))}
    lines = tuple(
        {
            "value": value,
            "about": axes[rows].values.get(value, ""),
            "cells": _views(project, found, cells, by, most),
            "total": _total(cells, by),
        }
        for value, cells in by_row.items()
    )
    by_column = list(zip(*by_row.values(), strict=True))
    return {
        "found": found,
        "axes": tuple(axes),
        "by": by or "admitted",
        "choices": tuple(SHOWN.items()),
        "columns": tuple((one[0].column, axes[columns].values.get(one[0].column, "")) for one in by_column),
        "lines": lines,
        "totals": tuple(_total(cells, by) for cells in by_column),
        "empty_cells": sum(_count(cell, by) == 0 for cell in found.cells),
        "api_path": f"/api/v1/projects/{project.slug}/scenarios/coverage?rows={quote(rows)}&columns={quote(columns)}",
    }


def _views(
    project: Project, found: CoverageOut, cells: Sequence[CellOut], by: str | None, most: int
) -> tuple[dict[str, object], ...]:
    scenarios = reverse("scenario-list", args=[project.slug])
    trajectories = reverse("trajectory-list", args=[project.slug])
    views = []
    for cell in cells:
        axes = f"axes={quote(f'{found.rows}={cell.row}')}&axes={quote(f'{found.columns}={cell.column}')}"
        shade = -(-_count(cell, by) * SHADES // most) if most else 0
        views.append(
            {
                "admitted": cell.admitted,
                "kept": cell.kept,
                "shade": shade,
                "admitted_url": f"{scenarios}?status=admitted&{axes}",
                "kept_url": f"{trajectories}?keep=true&{axes}",
            }
        )
    return tuple(views)


def _count(cell: CellOut, by: str | None) -> int:
    return cell.kept if by == "kept" else cell.admitted


def _total(cells: Sequence[CellOut], by: str | None) -> int:
    return sum(_count(cell, by) for cell in cells)
