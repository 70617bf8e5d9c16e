"""Figures as tables for pages: one line per model, one cell per figure, rates with their intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from curation.evaluations.metrics import COUNT, FINE_POINTS, POINTS, STATIC, Metric
from curation.evaluations.models import EvaluationKind
from curation.evaluations.screen.figures import Row, number

TITLE = "Figures by model"


# By their names in the API. Comparisons have metrics of other names, which are made of single episodes.
LIVE_COLUMNS = (
    Metric("completion_rate", "completed", "Share of episodes whose task was achieved"),
    Metric("completion_rate_without_hints", "unaided", "Share of episodes completed without a hint", drop="col-4"),
    Metric("avg_steps", "steps", "Mean steps of all episodes", POINTS),
    Metric("avg_steps_to_complete", "to complete", "Mean steps of the completed episodes", POINTS, drop="col-2"),
    Metric("avg_max_progress", "progress", "Mean of the highest progress of each episode", drop="col-2"),
    Metric("terminal_reward", "last reward", "Mean reward of the last step", POINTS),
    Metric("avg_reward_per_step", "per step", "Summed reward over steps", FINE_POINTS, drop="col-3"),
    Metric("avg_episode_reward", "summed", "Mean summed reward: it can reward stalling", POINTS, drop="col-2"),
    Metric("reward_std", "± sum", "Standard deviation of the summed rewards", POINTS, drop="col-4"),
    Metric("hint_usage_rate", "hints", "Share of episodes that asked for a hint", drop="col-3"),
    Metric("format_failure_rate", "no command", "Share of steps whose reply had no command", drop="col-3"),
    Metric("invalid_action_rate", "refused", "Share of steps whose action the server refused", drop="col-3"),
)
EPISODES = Metric("n", "episodes", "Episodes that were scored", COUNT)
TABLE_OF_KIND: Mapping[str, tuple[tuple[Metric, ...], str, str]] = MappingProxyType(
    {
        EvaluationKind.STATIC.value: (STATIC, "Rows", "No answer yet."),
        EvaluationKind.LIVE.value: (LIVE_COLUMNS, "Episodes", "No episode yet."),
    }
)


def figure_table(kind: str, rows: Sequence[Row], title: str = TITLE) -> dict[str, Any]:
    """Return a table of the rows as a page shows it: `counted` is the heading of `n`, `empty` the text without lines.

    A line is the row with its `cells` and with `missing`: how many rows or episodes of the launch have no result. The
    number that an `incomplete` model lacks in a part of the rows may not be known.
    """
    columns, counted, empty = TABLE_OF_KIND[kind]
    lines = [_line(row, columns) for row in rows]
    return {"title": title, "columns": columns, "counted": counted, "empty": empty, "lines": lines}


def tier_table(kind: str, overall: Sequence[Row], tiers: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """Return every figure of every model, in the order of `overall`, with a cell for all rows and one for each tier,
    from easy to hard. A tier that the model did not play has an empty one."""
    columns = [replace(column, drop="") for column in (EPISODES, *TABLE_OF_KIND[kind][0])]
    by_tier = [{str(row["model"]): row for row in rows} for rows in tiers.values()]
    nothing: Row = {"intervals": {}}

    def cells(row: Row, column: Metric) -> list[dict[str, Any]]:
        every = (row, *(rows.get(str(row["model"]), nothing) for rows in by_tier))
        return [{**_cell(one, column), "incomplete": one.get("incomplete")} for one in every]

    figures = [(column, [(row["model"], cells(row, column)) for row in overall]) for column in columns]
    return {"heads": [tier or "no tier" for tier in tiers], "figures": figures}


def _line(row: Row, columns: Sequence[Metric]) -> dict[str, Any]:
    missing = int(number(row, "episodes_missing") + number(row, "rows_missing"))
    return {**row, "missing": missing, "cells": [_cell(row, column) for column in columns]}


def _cell(row: Row, column: Metric) -> dict[str, Any]:
    """`interval` is the 95 % interval of a rate, in percent."""
    value, intervals = row.get(column.name), row["intervals"]
    if not isinstance(value, int | float):
        return {"column": column, "value": "–", "unit": "", "interval": ""}
    ends = intervals.get(column.name) if isinstance(intervals, dict) else None
    interval = f"{100 * ends[0]:.0f}–{100 * ends[1]:.0f}" if ends else ""
    return {"column": column, "value": column.unit.number(value), "unit": column.unit.suffix, "interval": interval}
