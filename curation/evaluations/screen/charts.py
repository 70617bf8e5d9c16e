from collections.abc import Sequence

from curation.evaluations.metrics import STATIC
from curation.evaluations.screen.figures import Row, number
from curation.web.charts import Figure, axis, bars, color, error_bars, figure

SHOWN = ("fmt", "xtr", "exact", "svc", "op_token")
LONGEST_NAME = 28


def score_chart(rows: Sequence[Row]) -> Figure:
    """Each model's rates side by side, with their Wilson intervals as whiskers."""
    rows = [row for row in rows if row["n"]]
    names = [labelled(_short(str(row["model"])), incomplete=bool(row.get("incomplete"))) for row in rows]
    traces = []
    for position, metric in enumerate((metric for metric in STATIC if metric.name in SHOWN), 1):
        values = [100 * number(row, metric.name) for row in rows]
        whiskers = error_bars(values, [_interval(row, metric.name) for row in rows], token="text-2")  # noqa: S106
        marker = {"color": color(f"chart-{position}")}
        traces.append(bars(metric.label, names, values, hover="%{y:.0f} %", marker=marker, error_y=whiskers))
    return figure(
        traces,
        barmode="group",
        bargap=0.25,
        yaxis=axis("% of rows", range=[0, 105], dtick=20),
        xaxis={"type": "category"},
    )


def _interval(row: Row, name: str) -> tuple[float, float]:
    intervals = row["intervals"]
    low, high = intervals[name] if isinstance(intervals, dict) else (0.0, 0.0)
    return 100 * low, 100 * high


def labelled(name: str, *, incomplete: bool) -> str:
    return f"{name} (incomplete)" if incomplete else name


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
