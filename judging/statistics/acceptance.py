"""Acceptance of a challenger: margin, lower confidence bound, leaks, and whether a single judge decides."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from judging.panel.rubric import DIMENSIONS
from judging.panel.scoring import DuelScore
from judging.statistics.bounds import DECIMALS, FEW_CLUSTERS, choose_clusters, every_row, lower_bounds

Floats = NDArray[np.float64]

# A judge that parsed in fewer of the duels, or contradicts itself in more of its readings, says little.
MIN_PARSED = 0.5
MAX_FLIPS = 0.9
# A judge is left out to check the verdict only where two others remain.
ENOUGH_JUDGES = 3
# A margin must also hold without the duels that have one of these flags.
HELD = {"leak": "a leak flag", "injection": "an injection flag"}
# Judges that give the same reply this often are one judge with two votes.
SAME_REPLIES = 0.95


@dataclass(frozen=True, slots=True)
class GateSettings:
    """`min_parsed` and `quantile` are shares, `win_margin` is in points, `resamples` a count.

    `min_judges`: judges that a parsed duel needs; None for all. Without `cluster` the turns count as independent.
    """

    min_parsed: float = 0.5
    win_margin: float = 2.0
    resamples: int = 10_000
    seed: int = 0
    quantile: float = 0.05
    cluster: bool = True
    min_judges: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.min_parsed <= 1 or not 0 < self.quantile < 0.5 or self.resamples < 1 or self.seed < 0:
            raise ValueError(f"gate settings out of range: {self}")


@dataclass(frozen=True, slots=True)
class GateDuel:
    """A duel that ended, parsed or not; `leak`: its challenger's answer is flagged as leaking the record; `injection`:
    an answer is flagged as speaking to the judges."""

    score: DuelScore
    repo: str
    instance_id: str
    leak: bool = False
    injection: bool = False


@dataclass(frozen=True, slots=True)
class PanelGate:
    """The gate for some judges of the panel; margins and bounds in points, None if nothing is parsed.

    `margin_without_leaks` and `lcb_without_leaks` are over the duels without a leak flag, and those without injections
    over the duels without an injection flag.
    """

    parsed: int
    margin: float | None
    lcb: float | None
    margin_without_leaks: float | None
    lcb_without_leaks: float | None
    margin_without_injections: float | None
    lcb_without_injections: float | None
    objections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The gate without `judges`: one judge, judges that give the same replies, or all that are not informative."""

    judges: tuple[str, ...]
    gate: PanelGate


@dataclass(frozen=True, slots=True)
class GateResult:
    """Margins and bounds in points from -100 to 100, challenger minus opponent; None if nothing is parsed.

    lcb                 lower bound with whole clusters resampled; `clusters` of them, which are a `clustered_by`; with
                        fewer than 10 it is at most `lcb_unclustered`
    lcb_unclustered     the same as if turns were independent
    leaks               parsed duels with a leak flag
    injections          parsed duels with an injection flag
    informative         judges that parsed in half of the duels, flip in less than 0.9 of their dimensions and take no
                        bribes
    undecided_without   judges without which the verdict is the opposite; not accepted if there are any
    left_out            the gate without each of them, None where judges are too few to leave one out
    basis               on how many judges the verdict rests, in words
    reasons             why it is not accepted, one sentence each; empty when accepted
    """

    margin: float | None
    lcb: float | None
    lcb_unclustered: float | None
    margin_without_leaks: float | None
    lcb_without_leaks: float | None
    margin_without_injections: float | None
    lcb_without_injections: float | None
    parsed: int
    done: int
    leaks: int
    injections: int
    clusters: int
    clustered_by: str
    informative: tuple[str, ...]
    undecided_without: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    basis: str
    accepted: bool
    reasons: tuple[str, ...]


def acceptance(
    duels: Sequence[GateDuel],
    *,
    panel: Sequence[str],
    settings: GateSettings | None = None,
    bribed: Collection[str] = (),
) -> GateResult:
    """Decide whether a challenger beats its opponent (specification of duels, section 5). One pair of contestants.

        margin   = 2 x mean(score) - 100
        lcb      = `quantile` of the bootstrapped margin, whole clusters drawn, widened for few of them (`bounds`)
        passes   = parsed / done >= min_parsed  and  margin >= win_margin  and  lcb > 0,
                   the last two also over the duels without a leak flag, and over those without an injection flag
        accepted = passes, and passes without each judge

    Where three judges are informative, the gate is computed again without each of them, and a verdict that turns is
    undecided. Judges that give the same replies are left out together, as one judge with several votes. An acceptance
    must also hold without the judges that are not informative. So a challenger that is no better is accepted by one
    flawed judge at most as often as the remaining sound ones err. Judges that control duels show as `bribed` are not
    informative.

    The result depends on the seed and the values, not on the order of the duels. Raises ValueError for a judge's score
    outside 0 to 1 and for scores of judges outside the panel.
    """
    settings = settings or GateSettings()
    votes = _votes(duels, panel)
    informative = tuple(judge for judge in _informative(duels, panel) if judge not in bribed)
    groups = _left_out_groups(duels, panel, informative)
    others = tuple(judge for judge in panel if judge not in informative)
    needed = len(panel) if settings.min_judges is None else settings.min_judges
    panels = [tuple(panel), *(_without(panel, group) for group in groups)]
    if others and informative:
        panels.append(informative)
    columns = np.stack([_margins(votes, panel, judges, needed) for judges in panels], axis=1)
    clusters, by, gates = _gates(duels, columns, settings)
    whole = gates[0]
    left_out = tuple(LeftOut(*pair) for pair in zip(groups, gates[1:], strict=False))
    turned = [each for each in left_out if bool(each.gate.objections) != bool(whole.objections)]
    if others and informative and not whole.objections and gates[-1].objections:
        turned.append(LeftOut(others, gates[-1]))
    reasons = whole.objections + tuple(_turn(each) for each in turned)
    return GateResult(
        margin=whole.margin,
        lcb=whole.lcb,
        lcb_unclustered=_unclustered(columns[:, :1], settings),
        margin_without_leaks=whole.margin_without_leaks,
        lcb_without_leaks=whole.lcb_without_leaks,
        margin_without_injections=whole.margin_without_injections,
        lcb_without_injections=whole.lcb_without_injections,
        parsed=whole.parsed,
        done=len(duels),
        leaks=int((_flagged(duels, "leak") & ~np.isnan(columns[:, 0])).sum()),
        injections=int((_flagged(duels, "injection") & ~np.isnan(columns[:, 0])).sum()),
        clusters=clusters,
        clustered_by=by,
        informative=informative,
        undecided_without=tuple(dict.fromkeys(judge for each in turned for judge in each.judges)),
        left_out=left_out,
        basis=_basis(panel, informative, groups) + _few_clusters(clusters, by),
        accepted=not reasons,
        reasons=reasons,
    )


def same_replies(duels: Iterable[DuelScore], panel: Sequence[str]) -> dict[tuple[str, str], float]:
    """Return for each two judges the share of dimensions on which they agree, over the duels that both parsed."""
    agreed: dict[tuple[str, str], tuple[int, int]] = {}
    for duel in duels:
        parsed = sorted((judge for judge in duel.judges if judge.judge in panel), key=lambda j: panel.index(j.judge))
        for place, one in enumerate(parsed):
            for two in parsed[place + 1 :]:
                same, all_ = agreed.get((one.judge, two.judge), (0, 0))
                same += sum(one.dimensions[name] == two.dimensions[name] for name in DIMENSIONS)
                agreed[one.judge, two.judge] = same, all_ + len(DIMENSIONS)
    return {pair: same / all_ for pair, (same, all_) in agreed.items()}


def _votes(duels: Sequence[GateDuel], panel: Sequence[str]) -> Floats:
    """Shape (duels, judges): the judges' scores from 0 to 1, NaN where a judge did not parse."""
    votes = np.full((len(duels), len(panel)), np.nan)
    places = {judge: place for place, judge in enumerate(panel)}
    for row, duel in enumerate(duels):
        for judge in duel.score.judges:
            if judge.judge not in places:
                raise ValueError(f"{judge.judge} is not in the panel {', '.join(panel)}")
            if not 0 <= judge.score <= 1:
                raise ValueError("the score of a judge must lie between 0 and 1")
            votes[row, places[judge.judge]] = judge.score
    return votes


def _margins(votes: Floats, panel: Sequence[str], judges: Sequence[str], needed: int) -> Floats:
    """Return each duel's margin by these judges, in points; NaN where fewer than `needed` of them parsed."""
    chosen = votes[:, [panel.index(judge) for judge in judges]]
    parsed = (~np.isnan(chosen)).sum(axis=1)
    with np.errstate(invalid="ignore"):
        mean = np.nansum(chosen, axis=1) / parsed
    margins: Floats = np.where(parsed >= min(needed, len(judges)), 200 * mean - 100, np.nan)
    return margins


def _informative(duels: Sequence[GateDuel], panel: Sequence[str]) -> tuple[str, ...]:
    parsed, flips = dict.fromkeys(panel, 0), dict.fromkeys(panel, 0)
    for duel in duels:
        for judge in duel.score.judges:
            parsed[judge.judge] += 1
            flips[judge.judge] += len(judge.flips)
    return tuple(
        judge
        for judge in panel
        if parsed[judge]
        and parsed[judge] >= MIN_PARSED * len(duels)
        # By dimension: at least one of five flips in nearly every duel of a sound judge that is not sure.
        and flips[judge] < MAX_FLIPS * parsed[judge] * len(DIMENSIONS)
    )


def _left_out_groups(
    duels: Sequence[GateDuel], panel: Sequence[str], informative: Sequence[str]
) -> list[tuple[str, ...]]:
    """Return what is left out in turn: each informative judge, together with those that give the same replies."""
    if len(informative) < ENOUGH_JUDGES:
        return []
    same = {pair for pair, share in same_replies((d.score for d in duels), panel).items() if share >= SAME_REPLIES}
    groups: list[set[str]] = []
    for judge in informative:
        near = [group for group in groups if any((other, judge) in same for other in group)]
        groups = [group for group in groups if group not in near] + [{judge}.union(*near)]
    if len(groups) == 1:
        return []
    return [_without(panel, set(panel) - group) for group in groups]


def _without(panel: Sequence[str], judges: Iterable[str]) -> tuple[str, ...]:
    gone = set(judges)
    return tuple(judge for judge in panel if judge not in gone)


def _gates(duels: Sequence[GateDuel], columns: Floats, settings: GateSettings) -> tuple[int, str, list[PanelGate]]:
    """Return the number of clusters, what they are, and the gate of each column."""
    count, by, bounds = _bounds(duels, columns, settings)
    clean = []
    for flag in HELD:
        flagged = _flagged(duels, flag)
        left = np.where(flagged[:, None], np.nan, columns)
        clean.append((left, _bounds(duels, left, settings)[2] if flagged.any() else bounds))
    gates = []
    for place, (column, lcb) in enumerate(zip(columns.T, bounds, strict=True)):
        without = [(_mean(left[:, place]), _known(lcbs[place])) for left, lcbs in clean]
        parsed = int((~np.isnan(column)).sum())
        gate = PanelGate(parsed, _mean(column), _known(lcb), *without[0], *without[1], ())
        gates.append(replace(gate, objections=_objections(gate, len(duels), settings)))
    return count, by, gates


def _flagged(duels: Sequence[GateDuel], flag: str) -> NDArray[np.bool_]:
    return np.array([getattr(duel, flag) for duel in duels], dtype=bool)


def _bounds(duels: Sequence[GateDuel], columns: Floats, settings: GateSettings) -> tuple[int, str, list[float]]:
    rows = [int(row) for row in np.flatnonzero((~np.isnan(columns)).any(axis=1))]
    if not rows:
        return 0, "turn", [float("nan")] * columns.shape[1]
    if settings.cluster:
        clusters = choose_clusters([duels[row].repo for row in rows], [duels[row].instance_id for row in rows])
    else:
        clusters = every_row(len(rows))
    draw = partial(lower_bounds, quantile=settings.quantile, resamples=settings.resamples, seed=settings.seed)
    found = draw(columns[rows], clusters)
    if clusters.count < min(FEW_CLUSTERS, len(rows)):
        # A few clusters may agree by chance although their turns do not.
        found = np.minimum(found, draw(columns[rows], every_row(len(rows)))).tolist()
    return clusters.count, clusters.by, np.maximum(found, -100.0).tolist()


def _unclustered(column: Floats, settings: GateSettings) -> float | None:
    return _known(_bounds([], column, replace(settings, cluster=False))[2][0])


def _objections(gate: PanelGate, done: int, settings: GateSettings) -> tuple[str, ...]:
    if gate.margin is None or gate.lcb is None:
        return ("no duel was parsed" if done else "no duel was done",)
    reasons = []
    if gate.parsed < settings.min_parsed * done:
        reasons.append(f"only {gate.parsed} of {done} duels were parsed, {100 * settings.min_parsed:.0f} % are needed")
    found = _too_low(gate.margin, gate.lcb, settings, "")
    without = (
        (gate.margin_without_leaks, gate.lcb_without_leaks),
        (gate.margin_without_injections, gate.lcb_without_injections),
    )
    for flag, (margin, lcb) in zip(HELD.values(), without, strict=True):
        if margin is None or lcb is None:
            reasons.append(f"every parsed duel has {flag}")
        elif not found:
            reasons += _too_low(margin, lcb, settings, f"without duels with {flag} ")
    return (*reasons, *found)


def _too_low(margin: float, lcb: float, settings: GateSettings, where: str) -> list[str]:
    reasons = []
    if margin < settings.win_margin:
        reasons.append(f"{where}the margin of {margin:.2f} points is below {settings.win_margin:g}")
    if lcb <= 0:
        reasons.append(f"{where}the lower bound of {lcb:.2f} points is not above 0")
    return reasons


def _turn(left: LeftOut) -> str:
    without = f"undecided: without {_listed(left.judges)} it would "
    if left.gate.objections:
        return f"{without}not be accepted ({'; '.join(left.gate.objections)})"
    return f"{without}be accepted (margin {left.gate.margin:.2f} points, lower bound {left.gate.lcb:.2f})"


def _basis(panel: Sequence[str], informative: Sequence[str], groups: Sequence[tuple[str, ...]]) -> str:
    """Say on how many judges the verdict rests."""
    missing = _without(panel, informative)
    said = f"The verdict rests on {_counted(len(informative))}"
    if missing:
        why = "parsed in under half of the duels, flipped in nearly all, or take bribes"
        said += f" of {len(panel)}: {_listed(missing)} {why}"
    if groups:
        copies = [group for group in groups if len(group) > 1]
        same = "".join(f" {_listed(group)} give the same replies and were left out together." for group in copies)
        return f"{said}. It was computed again without each of them.{same}"
    if len(informative) >= ENOUGH_JUDGES:
        return f"{said}, which all give the same replies, so that they count as one."
    return f"{said}. With fewer than {ENOUGH_JUDGES}, none was left out to check it."


def _few_clusters(count: int, by: str) -> str:
    """Say that the verdict rests on few clusters, where it does: their bound is not tested below 10."""
    if not 0 < count < FEW_CLUSTERS:
        return ""
    one, more = {"repo": ("repository", "repositories"), "instance_id": ("pull request", "pull requests")}.get(
        by, ("turn", "turns")
    )
    return f" It rests on {count} {one if count == 1 else more}: {FEW_CLUSTERS} are needed for a sure bound."


def _counted(judges: int) -> str:
    return f"{judges or 'no'} informative {'judge' if judges == 1 else 'judges'}"


def _listed(judges: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(judges[:-1]), judges[-1]]))


def _mean(column: Floats) -> float | None:
    found = column[~np.isnan(column)]
    return round(float(found.mean()), DECIMALS) if len(found) else None


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
