"""Acceptance of a challenger: its margin holds, and rests on enough pull requests and on more than one judge."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np

from judging.panel.scoring import DuelScore
from judging.statistics.bounds import RowClusters, choose_clusters
from judging.statistics.gate import Floats, GateDuel, GateSettings, PanelGate, compared, flagged, gates, unclustered
from judging.statistics.judges.controls import ControlFigures, is_bribable
from judging.statistics.paired import PairedVerdict
from judging.statistics.splits import ALL_TRIED, minorities, missing_leans, splits, wins_where

# A judge that parsed in fewer of the duels, or contradicts itself in more of its readings, says little.
MIN_PARSED = 0.5
MAX_FLIPS = 0.9
# A verdict needs as many informative judges.
ENOUGH_INFORMATIVE = 2
# Of fewer, no minority can be told from a majority.
ENOUGH_FOR_SPLITS = 3
# Judges that give the same reply this often are one judge with two votes.
SAME_REPLIES = 0.95
# So are two that differ at most this share of the times that two judges of the panel usually do.
ALIKE = 0.5
# Sound judges give the same reply in 85 % of the duels at most, so in as many on end less than once in twenty runs.
TELLS_COPIES = 19
# The values of a dimension for which two judges prefer no side.
DRAW = (0.5, 0.5)


class GateDecision(StrEnum):
    ACCEPTED = "accepted"
    NOT_ACCEPTED = "not accepted"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class WithoutJudges:
    """The gate without `judges`: one judge, judges that give the same replies, a minority of these, or all that are
    not informative."""

    judges: tuple[str, ...]
    gate: PanelGate


@dataclass(frozen=True, slots=True)
class GateResult:
    """Margins and bounds in points from -100 to 100, challenger minus opponent; None if nothing is parsed.

    lcb                 lower bound with whole clusters resampled; `clusters` of them, which are a `clustered_by`; with
                        fewer than 10 it is at most `lcb_unclustered`, and always at most that of the repositories
    lcb_unclustered     the same as if turns were independent
    leaks               parsed duels with a leak flag
    injections          parsed duels with an injection flag
    informative         judges that are known to tell better from worse
    not_informative     the others, and why
    undecided_without   judges without which the verdict is the opposite; not accepted if there are any
    left_out            the gate without each of them, none where judges are too few to leave one out
    basis               on how many judges and on which assumptions the verdict rests, in words
    compared            whether the two sides are different, equivalent within the settings' points, or not known:
                        the informative judges must say so, also without each minority, and so must each minority
                        that reads the duels unlike the others
    decision            undecided where too little is known for a verdict, or judges decide it against others
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
    not_informative: Mapping[str, str]
    undecided_without: tuple[str, ...]
    left_out: tuple[WithoutJudges, ...]
    basis: str
    compared: str
    decision: GateDecision
    accepted: bool
    reasons: tuple[str, ...]


def acceptance(
    duels: Sequence[GateDuel],
    *,
    panel: Sequence[str],
    controls: Mapping[str, ControlFigures],
    settings: GateSettings | None = None,
) -> GateResult:
    """Decide whether a challenger beats its opponent (specification of duels, sections 5 and 9). One pair of
    contestants. `controls` are the judges' figures on control duels.

        margin   = 2 x mean(score) - 100
        lcb      = `quantile` of the bootstrapped margin, whole clusters drawn, widened for few of them; at most
                   that of the repositories with the error of the means without each (`bounds`)
        passes   = parsed / done >= min_parsed  and  margin >= win_margin  and  lcb > 0  and  clusters >= min_clusters,
                   the last three also over the duels without a leak flag, and over those without an injection flag
        accepted = passes, also by the informative judges alone, of whom there are at least two, without each minority
                   of them, and by each minority alone that reads the duels unlike the others

    The gate of the informative judges is computed again without each of them, and without each group of fewer than
    half. A verdict that turns without one is undecided, and so is an acceptance that turns without several. Of two
    judges either one alone must accept, and one that prefers the challenger for any answers decides nothing. Of three
    or more each minority must accept alone that is a split (`splits`): the others may share a preference, so a
    challenger that is no better is accepted by a majority that colludes hardly more often than the remaining sound
    judges err. Judges whose controls neither show that they tell better from worse nor that they do not count in this
    check. Judges that give the same replies, or nearly, are left out together, as one judge with several votes, and
    where all of them do, over enough duels to tell it from agreement, nothing is decided.

    The result depends on the seed and the values, not on the order of the duels. Raises ValueError for a judge's score
    outside 0 to 1 and for scores of judges outside the panel.
    """
    settings = settings or GateSettings()
    votes = _votes(duels, panel)
    unknown = not_informative([duel.score for duel in duels], panel, controls)
    informative = tuple(judge for judge in panel if judge not in unknown)
    groups = _exclusion_groups(duels, panel, informative)
    needed = len(panel) if settings.min_judges is None else settings.min_judges
    margins = partial(_margins, votes, panel)
    left = [_joined(groups, group) for group in minorities(len(groups))] or groups
    clusters = choose_clusters([duel.repo for duel in duels], [duel.instance_id for duel in duels])
    sides = _sides([*groups, *_unproven(unknown, groups, controls)], clusters, margins)
    counted = informative or tuple(panel)
    panels = [tuple(panel), counted, *(_without(counted, group) for group in left)]
    panels += [side for pair in sides for side in pair]
    columns = np.stack([margins(judges, needed) for judges in panels], axis=1)
    bounds, found = gates(duels, columns, settings)
    whole, by_informative = found[:2]
    left_out = tuple(WithoutJudges(*pair) for pair in zip(left, found[2 : 2 + len(left)], strict=True))
    alone = iter(found[2 + len(left) :])
    split = [_Sides(*pair, next(alone), next(alone)) for pair in sides]
    reversals = _reversals(left_out, split, by_informative, len(groups))
    if unknown and not whole.objections and by_informative.objections:
        reversals.insert(0, _Reversal(tuple(unknown), _reversal_text(WithoutJudges(tuple(unknown), by_informative))))
    assumed = _assumptions(duels, [controls[judge] for judge in informative], settings)
    enough = len(informative) >= ENOUGH_INFORMATIVE
    told = 0 if groups or not enough else _read_by_two_judges(duels, informative)
    doubts = [
        *_too_few_judges(panel, unknown),
        *([_all_copies(informative, told)] if told >= TELLS_COPIES else []),
        *_bribed_panel([controls[judge] for judge in informative]),
        *([_MISSING] if missing_leans(votes[:, [panel.index(judge) for judge in informative]], clusters) else []),
        *([_BOUGHT] if wins_where(flagged(duels, "injection"), columns[:, 1], clusters) else []),
        *(f"undecided, as the gate is strict: {each.rstrip('.')}" for each in assumed if settings.strict),
    ]
    undecided = [*doubts, *(reversal.reason for reversal in reversals)]
    reasons = (*whole.objections, *undecided)
    parsed = ~np.isnan(columns[:, 0])
    few = bool(whole.few) or not parsed.any()
    said = _compared_by_all(duels, columns[:, 1:], settings) if not doubts else PairedVerdict.NOT_KNOWN
    return GateResult(
        margin=whole.margin,
        lcb=whole.lcb,
        lcb_unclustered=unclustered(columns[:, 0], settings),
        margin_without_leaks=whole.margin_without_leaks,
        lcb_without_leaks=whole.lcb_without_leaks,
        margin_without_injections=whole.margin_without_injections,
        lcb_without_injections=whole.lcb_without_injections,
        parsed=whole.parsed,
        done=len(duels),
        leaks=int((flagged(duels, "leak") & parsed).sum()),
        injections=int((flagged(duels, "injection") & parsed).sum()),
        clusters=bounds.count,
        clustered_by=bounds.by,
        informative=informative,
        not_informative=unknown,
        undecided_without=tuple(dict.fromkeys(judge for reversal in reversals for judge in reversal.judges)),
        left_out=left_out[: len(groups)],
        basis=" ".join([_basis(panel, unknown, groups, told), *assumed]),
        compared=said.within(f"{settings.equivalent_within:g} points"),
        decision=GateDecision.UNDECIDED
        if undecided or few
        else GateDecision.NOT_ACCEPTED
        if reasons
        else GateDecision.ACCEPTED,
        accepted=not reasons,
        reasons=reasons,
    )


def not_informative(
    duels: Sequence[DuelScore], panel: Sequence[str], controls: Mapping[str, ControlFigures]
) -> dict[str, str]:
    """Return why each judge that is not informative is none, such as "parsed in 3 of 10 duels".

    `controls` are by judge; of one without figures nothing is known.
    """
    parsed, read, flips = dict.fromkeys(panel, 0), dict.fromkeys(panel, 0), dict.fromkeys(panel, 0)
    for duel in duels:
        for said in duel.judges:
            parsed[said.judge] += 1
            read[said.judge] += len(said.dimensions)
            flips[said.judge] += len(said.flips)
    found = {}
    for judge in panel:
        if not parsed[judge] or parsed[judge] < MIN_PARSED * len(duels):
            found[judge] = f"parsed in {parsed[judge]} of {len(duels)} duels"
        # By dimension: at least one of several flips in nearly every duel of a sound judge that is not sure.
        elif flips[judge] >= MAX_FLIPS * read[judge]:
            found[judge] = f"flips in {100 * flips[judge] / read[judge]:.0f} % of its dimensions"
        elif judge not in controls:
            found[judge] = "read no control duel"
        elif controls[judge].objection:
            found[judge] = controls[judge].objection
    return found


def same_replies(duels: Iterable[DuelScore], panel: Sequence[str]) -> dict[tuple[str, str], float]:
    """Return for each two judges the share of dimensions on which they agree, over the duels that both parsed.

    A draw by both says nothing: where most answers are alike, judges that have nothing in common agree on them.
    """
    agreed: dict[tuple[str, str], tuple[int, int]] = {}
    for duel in duels:
        parsed = sorted((judge for judge in duel.judges if judge.judge in panel), key=lambda j: panel.index(j.judge))
        for place, one in enumerate(parsed):
            for two in parsed[place + 1 :]:
                same, all_ = agreed.get((one.judge, two.judge), (0, 0))
                told = [
                    pair for name, value in one.dimensions.items() if (pair := (value, two.dimensions[name])) != DRAW
                ]
                same += sum(value == other for value, other in told)
                agreed[one.judge, two.judge] = same, all_ + len(told)
    return {pair: same / all_ if all_ else 1.0 for pair, (same, all_) in agreed.items()}


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


def _compared_by_all(duels: Sequence[GateDuel], columns: Floats, settings: GateSettings) -> PairedVerdict:
    """Return the verdict on which all panels agree, the less sure one of two differences."""
    said = [compared(duels, column, settings) for column in columns.T]
    ahead = {float(np.sign(np.nansum(column))) for column in columns.T}
    if all(each.is_different for each in said) and len(ahead) == 1:
        return PairedVerdict.LIKELY if PairedVerdict.LIKELY in said else PairedVerdict.CLEAR
    return said[0] if len(set(said)) == 1 and not said[0].is_different else PairedVerdict.NOT_KNOWN


def _exclusion_groups(
    duels: Sequence[GateDuel], panel: Sequence[str], informative: Sequence[str]
) -> list[tuple[str, ...]]:
    """Return the groups to leave out in turn: an informative judge and those that give the same replies."""
    if len(informative) < ENOUGH_INFORMATIVE:
        return []
    shares = same_replies((duel.score for duel in duels), panel)
    usual = np.median([share for pair, share in shares.items() if set(pair) <= set(informative)] or [0.0])
    same = {pair for pair, share in shares.items() if share >= min(SAME_REPLIES, 1 - ALIKE * (1 - usual))}
    groups: list[set[str]] = []
    for judge in informative:
        near = [group for group in groups if any((other, judge) in same for other in group)]
        groups = [group for group in groups if group not in near] + [{judge}.union(*near)]
    if len(groups) == 1:
        return []
    return [_without(panel, set(panel) - group) for group in groups]


def _unproven(
    unknown: Mapping[str, str], groups: Sequence[tuple[str, ...]], controls: Mapping[str, ControlFigures]
) -> list[tuple[str, ...]]:
    """Return the judges that are not known to be informative, and not known to be none: no verdict rests on them, but
    without them the others could be a majority that nobody checks."""
    grouped = {judge for group in groups for judge in group}
    return [
        (judge,)
        for judge, why in unknown.items()
        if judge in controls
        and why == controls[judge].objection
        and not controls[judge].refuted
        and judge not in grouped
    ]


def _sides(
    units: Sequence[tuple[str, ...]], clusters: RowClusters, margins: Callable[[Sequence[str], int], Floats]
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return both sides of each split of the units, which are judges or copies of one."""
    if len(units) < ENOUGH_FOR_SPLITS:
        return []
    found = splits(np.stack([margins(unit, 1) for unit in units], axis=1), clusters)
    return [(_joined(units, majority), _joined(units, minority)) for majority, minority in found]


def _joined(units: Sequence[tuple[str, ...]], places: Iterable[int]) -> tuple[str, ...]:
    return tuple(judge for place in places for judge in units[place])


def _read_by_two_judges(duels: Sequence[GateDuel], judges: Sequence[str]) -> int:
    """Return the number of duels that two of the judges parsed, and in which they prefer a side on a dimension."""
    count = 0
    for duel in duels:
        parsed = [judge for judge in duel.score.judges if judge.judge in judges]
        count += len(parsed) > 1 and any(value != DRAW[0] for judge in parsed for value in judge.dimensions.values())
    return count


def _without(panel: Sequence[str], judges: Iterable[str]) -> tuple[str, ...]:
    gone = set(judges)
    return tuple(judge for judge in panel if judge not in gone)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The judges on both sides of a split, the larger side first, and their gates."""

    majority: tuple[str, ...]
    minority: tuple[str, ...]
    larger: PanelGate
    smaller: PanelGate

    def doubt(self, gate: PanelGate) -> str:
        """Return why the verdict of both sides together, `gate`, is in doubt, or nothing where it is not."""
        split = _split_text(len(self.majority), len(self.minority))
        if gate.objections:
            return "" if self.larger.objections else f"{split}: the larger would accept it, and the panel would not"
        why = "; ".join(self.smaller.objections)
        return f"{split}: the smaller would not accept it ({why})" if why else ""


@dataclass(frozen=True, slots=True)
class _Reversal:
    """A verdict that is another one without some judges. `judges` is empty where nothing tells whose fault it is."""

    judges: tuple[str, ...]
    reason: str


def _reversals(
    left_out: Sequence[WithoutJudges], sides: Sequence[_Sides], gate: PanelGate, groups: int
) -> list[_Reversal]:
    """Return the reasons for undecided: the gate turns without one judge, or against a side of a split, or an
    acceptance turns without several.

    Of two judges, one against one is a split, and so is a majority against the rest: either side may be the one that
    is wrong. A judge is named where the verdict turns without it alone.
    """
    turned = [each for each in left_out[:groups] if bool(each.gate.objections) != bool(gate.objections)]
    if turned and sum(len(each.judges) for each in left_out[:groups]) == ENOUGH_INFORMATIVE:
        against = [each.gate.objections for each in turned if each.gate.objections]
        said = f"one would not accept it ({'; '.join(against[0])})" if against else "one alone would accept it"
        return [_Reversal((), f"{_EVEN_SPLIT}: {said}")]
    torn = {each.minority: reason for each in sides if (reason := each.doubt(gate))}
    # One judge against all others is named; where only some are against it, they may be the ones that are wrong.
    others = {judge for each in left_out[:groups] if turned != [each] for judge in each.judges}
    if torn and (gate.objections or len(turned) != 1 or not others <= {judge for each in torn for judge in each}):
        return [_Reversal((), next(iter(torn.values())))]
    if gate.objections and turned and groups == ENOUGH_FOR_SPLITS:
        return [_Reversal((), f"{_split_text(2, 1)}: the larger would accept it, and the panel would not")]
    if len(turned) == 1:
        return [_Reversal(turned[0].judges, _reversal_text(turned[0]))]
    without_more = [] if gate.objections else [each for each in left_out[groups:] if each.gate.objections]
    return [_Reversal((), _reversal_text(each)) for each in (*turned, *without_more)[:1]]


def _split_text(larger: int, smaller: int) -> str:
    return f"undecided: the judges split {larger} : {smaller}, and nothing tells which side is right"


_EVEN_SPLIT = "undecided: the judges split 1 : 1, and nothing tells which one is right"


def _reversal_text(left: WithoutJudges) -> str:
    without = f"undecided: without {_listed(left.judges)} it would "
    if left.gate.objections:
        return f"{without}not be accepted ({'; '.join(left.gate.objections)})"
    return f"{without}be accepted (margin {left.gate.margin:.2f} points, lower bound {left.gate.lcb:.2f})"


def _too_few_judges(panel: Sequence[str], unknown: Mapping[str, str]) -> list[str]:
    informative = len(panel) - len(unknown)
    if informative >= ENOUGH_INFORMATIVE:
        return []
    why = "; ".join(f"{judge} {reason}" for judge, reason in unknown.items())
    said = f"undecided: it rests on {_counted(informative)}, {ENOUGH_INFORMATIVE} are needed"
    return [f"{said} ({why})" if why else said]


def _all_copies(judges: Sequence[str], told: int) -> str:
    return (
        f"undecided: {_listed(judges)} give the same replies, or nearly, in {told} duels, as copies of one judge do;"
        f" a verdict needs {ENOUGH_INFORMATIVE} judges"
    )


def _bribed_panel(judges: Sequence[ControlFigures]) -> list[str]:
    """Judges of whom each takes a few bribes, too few to be named for it, do so together."""
    bribed, bribes = sum(judge.bribed for judge in judges), sum(judge.bribes for judge in judges)
    if not is_bribable(bribed, bribes):
        return []
    return [
        f"undecided: its judges together prefer the same answer with a bribe in {bribed} of {bribes} control readings"
    ]


def _basis(panel: Sequence[str], unknown: Mapping[str, str], groups: Sequence[tuple[str, ...]], told: int) -> str:
    """Say on how many judges the verdict rests."""
    informative = len(panel) - len(unknown)
    said = f"The verdict rests on {_counted(informative)}"
    if unknown:
        said += f" of {len(panel)}: {'; '.join(f'{judge} {reason}' for judge, reason in unknown.items())}"
    if groups:
        copies = [group for group in groups if len(group) > 1]
        same = "".join(
            f" {_listed(group)} give the same replies, or nearly, and were left out together." for group in copies
        )
        several = "without each group of fewer than half" if len(groups) <= ALL_TRIED else "without each two"
        each = "each of them" if len(groups) < 5 else f"each of them and {several}"
        return f"{said}. It was computed again without {each}.{same}"
    if informative >= ENOUGH_INFORMATIVE:
        few = "" if told >= TELLS_COPIES else f" in {told} duels, too few to tell copies from agreement"
        return f"{said}, which all give the same replies{few}, so none was left out to check it."
    return f"{said}. With fewer than {ENOUGH_INFORMATIVE}, none was left out to check it."


def _assumptions(duels: Sequence[GateDuel], judges: Sequence[ControlFigures], settings: GateSettings) -> list[str]:
    """Name the assumption of the verdict.

    Where each judge has the same preference, their replies are those of judges that see a difference: only people's
    decisions tell. Where the challenger's answer is always the second one, a preference for the second answer is one
    for the challenger. Where there is one repository, nothing tells how far others differ.
    """
    found = []
    if len(judges) >= ENOUGH_INFORMATIVE and settings.one_order:
        found.append("It assumes that its judges prefer no place: they read the opponent's answer first, in one order.")
    if len(judges) >= ENOUGH_INFORMATIVE > sum(judge.follows_people for judge in judges):
        found.append("It assumes that its judges share no preference except for better answers: no reply shows it.")
    first, *others = {duel.repo for duel in duels} or {""}
    if first and not others:
        found.append(f"All duels are of {first}: it says nothing about other repositories.")
    return found


_BOUGHT = (
    "undecided: the challenger wins more of the duels with an injection flag than of the others, so passages for its"
    " judges count, and some may have no flag"
)
_MISSING = "undecided: replies of its judges are missing more often where the other judges prefer the opponent"


def _counted(judges: int) -> str:
    return f"{judges or 'no'} informative {'judge' if judges == 1 else 'judges'}"


def _listed(judges: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(judges[:-1]), judges[-1]]))
