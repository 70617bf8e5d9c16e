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
    """The least of these 5 % bounds of the margin: the bootstrap's, widened for few clusters, which are drawn whole;
    and Student's t with the error of the means without each cluster. Below 10 clusters also Student's t with the error
    of the bootstrap, and the bootstrap of single turns, since clusters may agree by chance."""
    groups: dict[str, list[float]] = defaultdict(list)
    for score, cluster in zip(scores, clusters, strict=True):
        groups[cluster].append(2 * score - 100)
    values = list(groups.values())
    count, mean = len(values), fmean(v for g in values for v in g)
    deviate = float(stdtrit(count - 1, 0.05))
    without = [fmean(v for g in values if g is not left for v in g) for left in values]
    jackknife = ((count - 1) / count * sum((each - mean) ** 2 for each in without)) ** 0.5
    bound, error = _drawn(values, resamples)
    bounds: list[float] = [bound, mean + deviate * jackknife]
    if count < 10:
        bounds += [mean + deviate * error, _drawn([[v] for g in values for v in g], resamples)[0]]
    return min(bounds)


def _drawn(groups: list[list[float]], resamples: int) -> tuple[float, float]:
    """Return the bootstrap's bound and error of the mean, both widened for few groups."""
    drawer, count = random.Random(7), len(groups)
    means = sorted(fmean(v for g in drawer.choices(groups, k=count) for v in g) for _ in range(resamples))
    spread = (count / (count - 1)) ** 0.5
    quantile = float(ndtr(spread * float(stdtrit(count - 1, 0.05))))
    return means[int(resamples * quantile)], spread * float(pstdev(means))


def bucket(score: float | None, *, final: float = 80, refined: float = 66, held: bool = False) -> str:
    if score is None:
        return "unparsed"
    if score >= final and not held:
        return "final"
    return "refined" if score >= refined else "defeat"
