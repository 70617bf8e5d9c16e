from dataclasses import dataclass

from django.urls import reverse

from curation.evaluations.compare.compare import MetricChange, ModelComparison
from curation.evaluations.compare.conclude import conclusion, missing_for_clear
from curation.evaluations.compare.leaderboard import Leaderboard
from curation.evaluations.compare.pairs import ComparedPair
from curation.evaluations.metrics import LIVE, STATIC
from curation.evaluations.models import EvaluatedModel, EvaluationKind
from curation.evaluations.screen.figures import with_ranks
from curation.evaluations.screen.tables import TableLine, figure_table

LABELS = {metric.name: metric.label.lower() for metric in (*STATIC, *LIVE)}


@dataclass(frozen=True, slots=True)
class MetricLine:
    """One metric as text; `tone` is good or bad only if there is a change. `p` is the corrected one."""

    label: str
    title: str
    before: str
    after: str
    delta: str
    interval: str
    said: str
    tone: str
    gained: int | None
    lost: int | None
    p: str
    note: str
    missing: str


@dataclass(frozen=True, slots=True)
class ComparedRowLine:
    number: int
    tier: str
    source: str
    preview: str
    before: str
    after: str
    before_url: str
    after_url: str


@dataclass(frozen=True, slots=True)
class TierHead:
    tier: str
    rows: int


@dataclass(frozen=True, slots=True)
class ComparedTierTable:
    """A column for all rows and one for each tier; a line has a cell for each, None where a tier lacks the metric."""

    heads: tuple[TierHead, ...]
    lines: tuple[tuple[MetricLine, tuple[MetricLine | None, ...]], ...]


@dataclass(frozen=True, slots=True)
class ComparePage:
    comparison: ModelComparison
    conclusion: str
    metrics: tuple[MetricLine, ...]
    tiers: ComparedTierTable
    gains: tuple[ComparedRowLine, ...]
    losses: tuple[ComparedRowLine, ...]


@dataclass(frozen=True, slots=True)
class LeaderLine:
    entry: EvaluatedModel
    score: TableLine
    baseline: bool
    compare_url: str
    worse: str


def compare_page(slug: str, found: ModelComparison) -> ComparePage:
    return ComparePage(
        found,
        conclusion(found),
        tuple(map(_line, found.metrics)),
        _tiers(found),
        tuple(_row(slug, found, pair) for pair in found.gains),
        tuple(_row(slug, found, pair) for pair in found.losses),
    )


def _tiers(found: ModelComparison) -> ComparedTierTable:
    """Tiers from easy to hard."""
    by_tier = [{change.name: _line(change) for change in tier.metrics} for tier in found.tiers]
    return ComparedTierTable(
        tuple(TierHead(tier.tier or "no tier", tier.rows) for tier in found.tiers),
        tuple(
            (_line(change), tuple(lines.get(change.name) for lines in by_tier))
            for change in found.metrics
            if change.metric.by_tier
        ),
    )


def leader_lines(board: Leaderboard) -> list[LeaderLine]:
    if board.split is None:
        return []
    baseline = board.split.baseline_of(board.kind)
    url = reverse("evaluation-compare", args=[board.split.project.slug])
    rows = with_ranks(entry.figures for entry in board.entries)
    scores = figure_table(board.kind, rows).lines
    return [
        LeaderLine(
            entry,
            score,
            baseline is not None and baseline.pk == entry.pk,
            f"{url}?before={baseline.pk}&after={entry.pk}" if baseline and baseline.pk != entry.pk else "",
            ", ".join(LABELS.get(name, name) for name in entry.against.get("worse", [])),
        )
        for entry, score in zip(board.entries, scores, strict=True)
    ]


def _line(change: MetricChange) -> MetricLine:
    unit, test = change.metric.unit, change.test
    tone = "" if not change.is_known or change.better is None else "good" if change.better else "bad"
    return MetricLine(
        label=change.metric.label,
        title=change.metric.title,
        before=unit.amount(change.before),
        after=unit.amount(change.after),
        delta=unit.change(change.change.delta),
        interval=change.interval,
        said=change.verdict,
        tone=tone,
        gained=test.gained if test else None,
        lost=test.lost if test else None,
        p=_p(change.corrected),
        note=change.note,
        missing=missing_for_clear(change),
    )


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _row(slug: str, found: ModelComparison, pair: ComparedPair) -> ComparedRowLine:
    example = pair.example
    live = found.before.evaluation.kind == EvaluationKind.LIVE
    view = "evaluation-episode" if live else "evaluation-call"
    return ComparedRowLine(
        example.number,
        example.tier,
        example.source,
        example.preview,
        pair.before.label,
        pair.after.label,
        reverse(view, args=[slug, found.before.evaluation_id, pair.before.pk]),
        reverse(view, args=[slug, found.after.evaluation_id, pair.after.pk]),
    )
