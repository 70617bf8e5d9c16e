"""What the comparison and the leaderboard show."""

from dataclasses import dataclass

from django.urls import reverse

from curation.evaluations.compare import Comparison, MetricChange, RowChange
from curation.evaluations.leaderboard import Leaderboard
from curation.evaluations.models import EvaluatedModel, Mark
from curation.evaluations.reports import amount, signed
from curation.evaluations.tables import HEADS, ScoreTable, score_table

LABELS = {**{name: label for name, (label, _) in HEADS.items()}, "lat": "latency", "len": "length"}


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
    before: Mark
    after: Mark
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
    name, ends = change.name, change.change.interval
    tone = "" if change.said.value == "within noise" or change.better is None else "good" if change.better else "bad"
    return MetricLine(
        label=LABELS[name],
        title=HEADS[name][1] if name in HEADS else "Mean per answer",
        before=amount(change.before, name),
        after=amount(change.after, name),
        delta=signed(change.change.delta, name),
        interval=f"{signed(ends.low, name)} … {signed(ends.high, name)}",
        said=change.said.value,
        tone=tone,
        gained=change.test.gained if change.test else None,
        lost=change.test.lost if change.test else None,
        p=f"{change.test.p:.3f}" if change.test else "",
    )


def _row(slug: str, found: Comparison, change: RowChange) -> RowLine:
    row = change.row
    return RowLine(
        row.number + 1,
        row.tier,
        row.source,
        row.preview,
        change.before_mark,
        change.after_mark,
        reverse("evaluation-call", args=[slug, found.before.evaluation_id, change.before]),
        reverse("evaluation-call", args=[slug, found.after.evaluation_id, change.after]),
    )
