"""A duel run in words and figures: the same data for the run's page and for `report.md`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from curation.duels.models import Duel, Exclusion
from curation.runs.models import Run
from judging.rubric import DIMENSIONS

REPORTED_KINDS = frozenset({"duel", "judge", "rescore"})
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunReport:
    """`figures` is the run's result (`curation.duels.verdict`); empty while there is no verdict yet."""

    run: Run
    figures: Figures
    exclusions: list[Exclusion]

    @property
    def has_verdict(self) -> bool:
        return "accepted" in self.figures

    @property
    def reasons(self) -> list[str]:
        """Why the challenger is not accepted."""
        return list(self.figures.get("reasons", []))


def report_of(run: Run) -> RunReport:
    return RunReport(run, run.result, list(Exclusion.objects.filter(project=run.project).order_by("instance_id")))


def rows_of(run: Run) -> QuerySet[Duel]:
    """The run's duels in the order of their prompts."""
    return Duel.objects.filter(run=run).select_related("prompt", "challenger").order_by("prompt_id", "id")


def markdown(report: RunReport) -> Iterator[str]:
    """The report line by line; rows are streamed, so its size does not matter."""
    run, figures = report.run, report.figures
    yield f"# Duel run {run.pk} of {run.project.slug}\n\n"
    yield from _header(run, figures)
    yield from _verdict(report)
    yield from _judges(figures)
    yield from _exclusions(report)
    yield "## Turns\n\n"
    yield _row(["score", "bucket", "source", "instance", "action style", *DIMENSIONS, "flags"])
    yield _row(["---:", "---", "---", "---", "---", *["---:"] * len(DIMENSIONS), "---"])
    for duel in rows_of(run).iterator(1000):
        yield _duel_row(duel)


def _header(run: Run, figures: Figures) -> Iterator[str]:
    cost = f"${run.cost:f}" + (f" and {run.cost_unknown_calls} calls of unknown cost" if run.cost_unknown_calls else "")
    yield f"- state: {run.state}\n- opponent: {'reference' if run.params.get('mode') == 1 else 'king'}\n"
    for name in ("king_model", "challenger_model"):
        if run.params.get(name):
            yield f"- {name.removesuffix('_model')}: {run.params[name]}\n"
    yield f"- duels: {figures.get('done', 0)}, of which {figures.get('parsed', 0)} parsed\n"
    for bucket, count in figures.get("buckets", {}).items():
        yield f"- {bucket}: {count}\n"
    yield f"- calls: {run.calls}, tokens in: {run.tokens_in}, tokens out: {run.tokens_out}, cost: {cost}\n"
    lengths = figures.get("lengths", {})
    won, lost = _number(lengths.get("winners")), _number(lengths.get("losers"))
    yield f"- mean answer length: winners {won}, losers {lost} tokens\n\n"


def _verdict(report: RunReport) -> Iterator[str]:
    figures = report.figures
    yield "## Verdict\n\n"
    if not report.has_verdict:
        yield "There is no verdict yet.\n\n"
        return
    yield f"**{'Accepted' if figures['accepted'] else 'Not accepted'}**"
    yield (": " + "; ".join(report.reasons) if report.reasons else "") + "\n\n"
    yield f"- margin (challenger minus king, points): {_number(figures['margin'])}\n"
    yield f"- LCB, clusters resampled by pull request: {_number(figures['lcb'], 4)}\n"
    yield f"- LCB, turns resampled: {_number(figures['lcb_unclustered'], 4)}\n\n"


def _judges(figures: Figures) -> Iterator[str]:
    yield "## Judges\n\n"
    yield _row(["judge", "duels", "win rate", "flip rate", "parse rate", "agreement", "tokens", "cost", "note"])
    yield _row(["---", *["---:"] * 7, "---"])
    for judge in figures.get("judges", []):
        rates = [_number(judge[key], 3) for key in ("win_rate", "flip_rate", "parse_rate", "agreement")]
        note = "same family as an answer's model (self-preference)" if judge["same_family"] else ""
        cost = "unknown" if judge["cost"] is None else f"${judge['cost']}"
        yield _row([judge["name"], judge["n"], *rates, judge["tokens"], cost, note])
    yield "\n"


def _exclusions(report: RunReport) -> Iterator[str]:
    skipped = report.figures.get("skipped", {})
    yield "## Left out\n\n"
    for stage, reasons in skipped.items():
        for reason, count in reasons.items():
            yield f"- {stage}: {count} × {_cell(reason)}\n"
    for exclusion in report.exclusions:
        yield f"- excluded instance {_cell(exclusion.instance_id)}: {_cell(exclusion.reason)}\n"
    yield "\n" if skipped or report.exclusions else "Nothing.\n\n"


def _duel_row(duel: Duel) -> str:
    prompt = duel.prompt
    metrics = [_number(duel.metrics.get(dimension)) for dimension in DIMENSIONS]
    place = f"{prompt.source}:{prompt.row_offset}:{prompt.turn_index}"
    cells = [_number(duel.score), duel.bucket, place, prompt.instance_id, duel.challenger.action_style]
    return _row([*cells, *metrics, ", ".join(duel.flag_names)])


def _row(cells: list[object]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |\n"


def _cell(value: object) -> str:
    """Text from outside, kept on its line and out of the table's syntax."""
    return " ".join(str(value).replace("|", "\\|").replace("<", "&lt;").split())


def _number(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
