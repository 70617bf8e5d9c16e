from typing import Any

from django.urls import reverse

from curation.evaluations.compare.compare import MetricChange, ModelComparison
from curation.evaluations.compare.conclude import conclusion, missing_for_clear
from curation.evaluations.compare.leaderboard import Leaderboard
from curation.evaluations.compare.pairs import ComparedPair
from curation.evaluations.metrics import LIVE, STATIC
from curation.evaluations.models import EvaluationKind
from curation.evaluations.screen.figures import with_ranks
from curation.evaluations.tables import figure_table

LABELS = {metric.name: metric.label.lower() for metric in (*STATIC, *LIVE)}


Json = dict[str, Any]


def compare_page(slug: str, found: ModelComparison) -> Json:
    return {
        "comparison": found,
        "conclusion": conclusion(found),
        "metrics": [_line(change) for change in found.metrics],
        "tiers": _tiers(found),
        "gains": [_row(slug, found, pair) for pair in found.gains],
        "losses": [_row(slug, found, pair) for pair in found.losses],
    }


def _tiers(found: ModelComparison) -> Json:
    """A column for all rows and one for each tier, from easy to hard; a line has a cell for each, None where a tier
    lacks the metric."""
    by_tier = [{change.name: _line(change) for change in tier.metrics} for tier in found.tiers]
    by_metric = [change for change in found.metrics if change.metric.by_tier]
    return {
        "heads": [(tier.tier or "no tier", tier.rows) for tier in found.tiers],
        "lines": [(_line(change), [lines.get(change.name) for lines in by_tier]) for change in by_metric],
    }


def leader_lines(board: Leaderboard) -> list[Json]:
    if board.split is None:
        return []
    baseline = board.split.baseline_of(board.kind)
    url = reverse("evaluation-compare", args=[board.split.project.slug])
    rows = with_ranks(entry.figures for entry in board.entries)
    return [
        {
            "entry": entry,
            "score": score,
            "baseline": baseline is not None and baseline.pk == entry.pk,
            "compare_url": f"{url}?before={baseline.pk}&after={entry.pk}" if baseline else "",
            "worse": ", ".join(LABELS.get(name, name) for name in entry.against.get("worse", [])),
        }
        for entry, score in zip(board.entries, figure_table(board.kind, rows)["lines"], strict=True)
    ]


def _line(change: MetricChange) -> Json:
    """One metric as text; `tone` is good or bad only if there is a change. `p` is the corrected one."""
    unit, test, p = change.metric.unit, change.test, change.corrected
    tone = "" if not change.is_known or change.better is None else "good" if change.better else "bad"
    return {
        "label": change.metric.label,
        "title": change.metric.title,
        "before": unit.amount(change.before),
        "after": unit.amount(change.after),
        "delta": unit.change(change.change.delta),
        "interval": change.interval,
        "said": change.verdict,
        "tone": tone,
        "gained": test.gained if test else None,
        "lost": test.lost if test else None,
        "p": "< 0.001" if p < 0.001 else f"{p:.3f}",
        "note": change.note,
        "missing": missing_for_clear(change),
    }


def _row(slug: str, found: ModelComparison, pair: ComparedPair) -> Json:
    view = "evaluation-episode" if found.before.evaluation.kind == EvaluationKind.LIVE else "evaluation-call"
    return {
        "pair": pair,
        "before_url": reverse(view, args=[slug, found.before.evaluation_id, pair.before.pk]),
        "after_url": reverse(view, args=[slug, found.after.evaluation_id, pair.after.pk]),
    }
