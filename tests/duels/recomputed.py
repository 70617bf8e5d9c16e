"""A run's figures computed a second time, independently, from the verdicts alone."""

import random
from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean, pstdev

from scipy.special import ndtr, stdtrit

from curation.duels.models import Verdict
from tests.duels.running import DIMENSIONS

Points = dict[str, float]


@dataclass
class Figures:
    scores: dict[int, float]
    metrics: dict[int, Points]
    flips: dict[str, float]
    wins: dict[str, float]
    parse: dict[str, float]

    @property
    def margin(self) -> float:
        return 2 * fmean(self.scores.values()) - 100


def recompute(rows: list[Verdict], panel: list[str], *, min_judges: int) -> Figures:
    """Apply the specification: a draw if two orders disagree, missing if one did not parse."""
    said: dict[tuple[int, str], dict[str, Points]] = defaultdict(dict)
    asked: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        asked[row.judge].append(row.parsed)
        if row.parsed:
            mine = {"king_first": 2, "challenger_first": 1}[row.order]
            said[row.duel_id, row.judge][row.order] = {
                name: 0.5 if value == 0 else float(value == mine) for name, value in row.dimensions.items()
            }
    flips: dict[str, list[bool]] = defaultdict(list)
    wins: dict[str, list[float]] = defaultdict(list)
    points: dict[int, list[Points]] = defaultdict(list)
    for (duel, judge), orders in said.items():
        if len(orders) < 2 or judge not in panel:
            continue
        one, two = orders.values()
        merged = {name: one[name] if one[name] == two[name] else 0.5 for name in DIMENSIONS}
        flips[judge].append(one != two)
        total = round(fmean(merged.values()), 9)
        wins[judge].append(1.0 if total > 0.5 else 0.5 if total == 0.5 else 0.0)
        points[duel].append(merged)
    parsed = {duel: judges for duel, judges in points.items() if len(judges) >= min_judges}
    return Figures(
        scores={duel: 100 * fmean(fmean(j.values()) for j in judges) for duel, judges in parsed.items()},
        metrics={duel: {n: 100 * fmean(j[n] for j in judges) for n in DIMENSIONS} for duel, judges in parsed.items()},
        flips={judge: fmean(values) for judge, values in flips.items()},
        wins={judge: fmean(values) for judge, values in wins.items()},
        parse={judge: fmean(values) for judge, values in asked.items()},
    )


def lower_bound(scores: list[float], clusters: list[str], *, resamples: int = 4000) -> float:
    """The least of three 5 % bounds of the margin: the bootstrap's, widened for few clusters, which are drawn whole;
    below 10 clusters Student's t with its error; and Student's t with the error of the means without each cluster."""
    groups: dict[str, list[float]] = defaultdict(list)
    for score, cluster in zip(scores, clusters, strict=True):
        groups[cluster].append(2 * score - 100)
    drawer, values = random.Random(7), list(groups.values())
    means = sorted(fmean(v for g in drawer.choices(values, k=len(values)) for v in g) for _ in range(resamples))
    count, mean = len(values), fmean(v for g in values for v in g)
    spread, deviate = (count / (count - 1)) ** 0.5, float(stdtrit(count - 1, 0.05))
    without = [fmean(v for g in values if g is not left for v in g) for left in values]
    jackknife = ((count - 1) / count * sum((each - mean) ** 2 for each in without)) ** 0.5
    bounds: list[float] = [means[int(resamples * ndtr(spread * deviate))], mean + deviate * jackknife]
    return min(bounds if count >= 10 else [*bounds, mean + deviate * spread * pstdev(means)])


def bucket(score: float | None, *, final: float = 80, refined: float = 66, held: bool = False) -> str:
    if score is None:
        return "unparsed"
    if score >= final and not held:
        return "final"
    return "refined" if score >= refined else "defeat"
