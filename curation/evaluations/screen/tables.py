"""Rows of figures as people read them: cells with words and intervals for pages, and a plain text table."""

from collections.abc import Sequence
from dataclasses import dataclass

from curation.evaluations.metrics import STATIC
from curation.evaluations.screen.figures import Row
from judging.commands.screen import FLAGS

# The rates of the table, in the order of its columns.
RATES = {metric.name: metric for metric in STATIC if metric.rate}
# What a narrow list drops, the highest first.
DROPPED = {"svc": "col-2", "exact_shell": "col-3", "service_and_op": "col-4"}


@dataclass(frozen=True, slots=True)
class Cell:
    """A share with its 95 % interval, in percent."""

    name: str
    percent: int
    interval: str
    title: str
    drop: str


@dataclass(frozen=True, slots=True)
class ScoreLine:
    rank: int
    model: str
    n: int
    errors: int
    cells: tuple[Cell, ...]
    lat: float
    length: float
    cut: int


@dataclass(frozen=True, slots=True)
class Head:
    label: str
    title: str
    drop: str


@dataclass(frozen=True, slots=True)
class ScoreTable:
    heads: tuple[Head, ...]
    lines: tuple[ScoreLine, ...]


def score_table(rows: Sequence[Row]) -> ScoreTable:
    heads = tuple(Head(rate.label, rate.title, DROPPED.get(name, "")) for name, rate in RATES.items())
    return ScoreTable(heads, tuple(_line(row) for row in rows))


def plain_table(rows: Sequence[Row]) -> str:
    """The table as the terminal prints it: shares as whole percent, seconds with one decimal, characters cut."""
    head = (
        f"{'Model':<36}{'n':>4}{'errs':>5}{'fmt%':>6}{'+xtr%':>7}{'exact%':>8}{'svc%':>6}{'op%':>6}{'lat':>6}{'len':>6}"
    )
    return "\n".join([head, "-" * len(head), *map(plain_line, rows)])


def plain_line(row: Row) -> str:
    """One model's row."""
    shares = zip(("fmt", "xtr", "exact", "svc", "op_token"), (6, 7, 8, 6, 6), strict=True)
    cells = "".join(f"{_whole_percent(row, name)}%".rjust(width) for name, width in shares)
    lat = f"{_float(row, 'lat'):.1f}s"
    return f"{row['model']!s:<36}{row['n']!s:>4}{row['errors']!s:>5}{cells}{lat:>6}{int(_float(row, 'len')):>5}"


def _line(row: Row) -> ScoreLine:
    intervals = row["intervals"] if isinstance(row["intervals"], dict) else {}
    cells = tuple(
        Cell(name, _whole_percent(row, name), _interval(intervals.get(name)), RATES[name].title, DROPPED.get(name, ""))
        for name in FLAGS
    )
    return ScoreLine(
        rank=int(_float(row, "rank")),
        model=str(row["model"]),
        n=int(_float(row, "n")),
        errors=int(_float(row, "errors")),
        cells=cells,
        lat=_float(row, "lat"),
        length=_float(row, "len"),
        cut=int(_float(row, "cut")),
    )


def _interval(ends: object) -> str:
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        return ""
    return f"{100 * ends[0]:.0f}–{100 * ends[1]:.0f}"


def _whole_percent(row: Row, name: str) -> int:
    return round(100 * _float(row, name))


def _float(row: Row, name: str) -> float:
    value = row.get(name, 0)
    return float(value) if isinstance(value, int | float) else 0.0
