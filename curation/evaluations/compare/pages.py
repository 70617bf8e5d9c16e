"""What the comparison and the leaderboard show."""

from dataclasses import dataclass

from django.urls import reverse

from curation.evaluations.compare.compare import Comparison, MetricChange, Moved
from curation.evaluations.compare.leaderboard import Leaderboard
from curation.evaluations.metrics import STATIC
from curation.evaluations.models import EvaluatedModel, EvaluationKind
from curation.evaluations.screen.tables import ScoreTable, score_table

LABELS = {metric.name: metric.label for metric in STATIC}


@dataclass(frozen=True, slots=True)
class MetricLine:
    """One metric in words; `tone` is good or bad only where the change is more than noise."""

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


@dataclass(frozen=True, slots=True)
class RowLine:
    number: int
    tier: str
    source: str
    preview: str
    before: str
    after: str
    before_url: str
    after_url: str


@dataclass(frozen=True, slots=True)
class TierLines:
    tier: str
    rows: int
    lines: tuple[MetricLine, ...]


@dataclass(frozen=True, slots=True)
class ComparePage:
    found: Comparison
    lines: tuple[MetricLine, ...]
    tiers: tuple[TierLines, ...]
    gains: tuple[RowLine, ...]
    losses: tuple[RowLine, ...]


@dataclass(frozen=True, slots=True)
class LeaderLine:
    entry: EvaluatedModel
    table: ScoreTable
    baseline: bool
    compare_url: str
    worse: str


def compare_page(slug: str, found: Comparison) -> ComparePage:
    return ComparePage(
        found,
        tuple(map(_line, found.metrics)),
        tuple(TierLines(tier.tier or "no tier", tier.rows, tuple(map(_line, tier.metrics))) for tier in found.tiers),
        tuple(_row(slug, found, change) for change in found.gains),
        tuple(_row(slug, found, change) for change in found.losses),
    )


def leader_lines(board: Leaderboard) -> list[LeaderLine]:
    if board.split is None:
        return []
    baseline = board.split.baseline
    url = reverse("evaluation-compare", args=[board.split.project.slug])
    return [
        LeaderLine(
            entry,
            score_table([{**entry.figures, "rank": place}]),
            board.split.baseline_id == entry.pk,
            f"{url}?before={baseline.pk}&after={entry.pk}" if baseline and baseline.pk != entry.pk else "",
            ", ".join(LABELS.get(name, name) for name in entry.against.get("worse", [])),
        )
        for place, entry in enumerate(board.entries, 1)
    ]


def _line(change: MetricChange) -> MetricLine:
    metric, ends = change.metric, change.change.interval
    tone = "" if change.said.value == "within noise" or change.better is None else "good" if change.better else "bad"
    return MetricLine(
        label=metric.label,
        title=metric.title,
        before=metric.amount(change.before),
        after=metric.amount(change.after),
        delta=metric.signed(change.change.delta),
        interval=f"{metric.signed(ends.low)} … {metric.signed(ends.high)}",
        said=change.said.value,
        tone=tone,
        gained=change.test.gained if change.test else None,
        lost=change.test.lost if change.test else None,
        p=_p(change.test.p) if change.test else "",
    )


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _row(slug: str, found: Comparison, change: Moved) -> RowLine:
    place = change.place
    live = found.before.evaluation.kind == EvaluationKind.LIVE
    view = "evaluation-episode" if live else "evaluation-call"
    return RowLine(
        place.number,
        place.tier,
        place.source,
        place.preview,
        change.before.label,
        change.after.label,
        reverse(view, args=[slug, found.before.evaluation_id, change.before.pk]),
        reverse(view, args=[slug, found.after.evaluation_id, change.after.pk]),
    )
