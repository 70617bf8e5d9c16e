"""How each judge of a panel behaved over a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judging.statistics.judges.readings import Floats, JudgeReadings, PanelReadings
from judging.statistics.rates import Interval

_Z_95 = 1.959963984540054


@dataclass(frozen=True, slots=True)
class JudgeSummary:
    """One judge over a run. All rates are shares from 0 to 1, None where there is nothing to count.

    n                   duels in which the judge parsed (every asked order)
    win_rate            share of them with a judge score above 0.5; a score of exactly 0.5 counts one half
    flip_rate           share of the duels read in both orders in which these disagree on at least one dimension
    flips               the same for each dimension alone
    first_share         share of the first answer in its choices that are no draw, over duels read in both orders; with
                        `first_expected`, where 95 % of unbiased judges are
    draw_rate           share of draws in its readings, by dimension
    length_slope        points of its score (0 to 100) per doubling of the challenger's length against its opponent's
    parse_rate          parsed readings / replies asked for: per attempt
    panel_agreement     share in which it prefers the same side (or a tie) as the mean of the *other* parsed judges
    agreement           share of dimensions on which it says the same as each other judge, both orders merged
    halves              win rate in the first and the second half of the run
    by_leak             win rate in the duels with a leak flag and in the others
    own_family          win rate of its own family's answers against another family's
    counts              numbers of duels behind these figures, by the names of `duel_counts`
    """

    judge: str
    n: int
    win_rate: float | None
    flip_rate: float | None
    flips: Mapping[str, float]
    first_share: float | None
    first_expected: Interval | None
    draw_rate: float | None
    length_slope: float | None
    parse_rate: float | None
    panel_agreement: float | None
    agreement: Mapping[str, float]
    halves: tuple[float | None, float | None]
    by_leak: tuple[float | None, float | None]
    own_family: float | None
    counts: Mapping[str, int]


def summarise(panel: PanelReadings) -> tuple[JudgeSummary, ...]:
    """Summarise every judge of the panel, in its order."""
    return tuple(_summary(judge, panel) for judge in panel.judges.values())


def mean_lengths(**sides: Sequence[int]) -> dict[str, float | None]:
    """Return the mean length of the answers on each side, such as the `winners`, to see whether judges prefer the
    longer ones; None for an empty side."""
    return {side: sum(lengths) / len(lengths) if lengths else None for side, lengths in sides.items()}


def preferred(score: Floats) -> Floats:
    """Return 1 where a score from 0 to 1 prefers the challenger, -1 its opponent, 0 neither, NaN where it is NaN."""
    # Sums of tenths: 0.7 and 0.3 must meet at a tie.
    return np.where(np.isnan(score), np.nan, np.sign(np.round(score - 0.5, 9)))


def win_rate(score: Floats) -> float | None:
    sides = preferred(score[~np.isnan(score)])
    return float((sides + 1).mean() / 2) if len(sides) else None


def first_share(judge: JudgeReadings) -> tuple[float, Interval] | None:
    """Return the first answer's share of the choices, and where 95 % of judges without a preference for a seat are.

    Without one, each duel's lead of the first seat is as likely as its opposite (the seats are exchanged between the
    orders), so the half width is 1.96 times the root of the summed squares of these leads, by the number of choices.
    """
    lead = judge.seat_lead[judge.both]
    choices = float(np.abs(judge.seats[judge.both]).sum())
    if not choices:
        return None
    half = _Z_95 * float(np.sqrt((lead**2).sum())) / choices / 2
    return 0.5 + float(lead.sum()) / choices / 2, Interval(max(0.0, 0.5 - half), min(1.0, 0.5 + half))


def same_choices(one: JudgeReadings, two: JudgeReadings) -> float | None:
    """Return the share of dimensions that both merged to the same, over the duels that both parsed."""
    joint = ~np.isnan(one.score) & ~np.isnan(two.score)
    return float((one.merged[joint] == two.merged[joint]).mean()) if joint.any() else None


def duel_counts(judge: JudgeReadings, panel: PanelReadings) -> dict[str, int]:
    """Return numbers of duels.

    challenger, neither, opponent             that it prefers
    first_half, second_half, leak, no_leak    of those in which it parsed
    chosen                                    read in both orders, with a choice that is no draw
    draw, unparsed                            with a draw in any dimension; with a reply that did not parse at once
    flip:<dimension>                          in which the orders disagree on it
    """
    sides, parsed = preferred(judge.score), ~np.isnan(judge.score)
    half = np.arange(panel.count) < panel.count / 2
    unread = np.isnan(judge.seats[:, :, 0])
    found = {
        "challenger": sides == 1,
        "neither": sides == 0,
        "opponent": sides == -1,
        "first_half": parsed & half,
        "second_half": parsed & ~half,
        "leak": parsed & panel.leak,
        "no_leak": parsed & ~panel.leak,
        "chosen": judge.both & (judge.seats != 0).any(axis=(1, 2)),
        "draw": (judge.seats == 0).any(axis=(1, 2)),
        "unparsed": ((judge.attempts > 1) | ((judge.attempts == 1) & unread)).any(axis=1),
        **{f"flip:{name}": parsed & judge.flips[:, place] for place, name in enumerate(judge.dimensions)},
    }
    return {name: int(duels.sum()) for name, duels in found.items()}


def _summary(judge: JudgeReadings, panel: PanelReadings) -> JudgeSummary:
    parsed = ~np.isnan(judge.score)
    n = int(parsed.sum())
    asked = int(judge.attempts.sum())
    seats = first_share(judge)
    half = np.arange(panel.count) < panel.count / 2
    others = {other.judge: same_choices(judge, other) for other in panel.judges.values() if other is not judge}
    flips = judge.flips[parsed & judge.both]
    draws = judge.seats[~np.isnan(judge.seats)] == 0
    return JudgeSummary(
        judge=judge.judge,
        n=n,
        win_rate=win_rate(judge.score),
        flip_rate=float(flips.any(axis=1).mean()) if len(flips) else None,
        flips=dict(zip(judge.dimensions, map(float, flips.mean(axis=0)), strict=True)) if len(flips) else {},
        first_share=seats[0] if seats else None,
        first_expected=seats[1] if seats else None,
        draw_rate=float(draws.mean()) if len(draws) else None,
        length_slope=_slope(panel.ratio, judge.score),
        parse_rate=float((~np.isnan(judge.seats[:, :, 0])).sum() / asked) if asked else None,
        panel_agreement=_panel_agreement(judge, panel),
        agreement={name: share for name, share in others.items() if share is not None},
        halves=(win_rate(judge.score[half]), win_rate(judge.score[~half])),
        by_leak=(win_rate(judge.score[panel.leak]), win_rate(judge.score[~panel.leak])),
        own_family=own_family_rate(judge.score, judge.own),
        counts=duel_counts(judge, panel),
    )


def own_family_rate(score: Floats, own: Floats) -> float | None:
    """Return the win rate of the side that is of one family, over the duels where one side is."""
    return win_rate(np.where(own > 0, score, 1 - score)[own != 0])


def _panel_agreement(judge: JudgeReadings, panel: PanelReadings) -> float | None:
    others = np.stack([other.score for other in panel.judges.values() if other is not judge] or [judge.score * np.nan])
    known = (~np.isnan(others)).sum(axis=0)
    compared: NDArray[np.bool_] = ~np.isnan(judge.score) & (known > 0)
    mean = np.nansum(others[:, compared], axis=0) / known[compared]
    return float((preferred(judge.score[compared]) == preferred(mean)).mean()) if compared.any() else None


def _slope(ratio: Floats, score: Floats) -> float | None:
    known = ~np.isnan(score)
    x, y = ratio[known], score[known]
    if not len(x) or np.ptp(x) == 0:
        return None
    centred = x - x.mean()
    return float(100 * (centred @ y) / (centred @ centred))
