"""A judge's flaws, each as a plain sentence: each is found by a test, all tests of a panel corrected together.

Some flaws have a zero point of their own: the first seat (its lead over both orders is as likely as its opposite),
replies that do not parse, a judge's consistency with itself. The others are told from the quality of the answers by
the other judges of the same answers: judge − other is compared per duel, and a finding needs the majority of the
others (partial conjunction, Y. Benjamini and R. Heller, Biometrics 64 (2008)), so that a flawed judge does not make
sound ones look flawed. These need two other judges.

Tests of means are Student's t over the sums of instances. Holm's correction over all tests of all judges keeps the
chance of any wrong sentence at 0.05 (S. Holm, Scandinavian Journal of Statistics 6 (1979)). A finding must also be
large enough to matter; the floors are the constants below.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

import numpy as np
from numpy.typing import NDArray

from judging.statistics.distributions import binomial_tail
from judging.statistics.judges.contrasts import (
    agreement,
    consistency,
    majority,
    regress,
    repeats,
    signed,
    two_sided,
    upper,
    usual,
)
from judging.statistics.judges.readings import Floats, JudgeReadings, PanelReadings
from judging.statistics.judges.summary import first_share, own_family_rate, preferred, win_rate
from judging.statistics.paired_tests import holm

LEVEL = 0.05
# With fewer duels nothing is said.
FEW_DUELS = 20
RELATED = 0.005  # a judge that agrees with the others or itself, this sure, does not decide at random
UNPARSED = 0.1  # of the replies; a judge is named if it is certain to be above
SAME = 0.85  # of the dimensions in the same order; sound judges are below, copies at 0.95 and more
NEARLY_ALL = 0.9
MOST_DRAWS = 0.5
SHIFT = 0.05  # of a judge's score from 0 to 1, against the other judges
SLOPE = 0.02  # of the same per doubling of the length


class Flaw(StrEnum):
    POSITION = "position"
    LENGTH = "length"
    OWN_FAMILY = "own_family"
    RANDOM = "random"
    DRAWS = "draws"
    CONSTANT = "constant"
    CONTRARIAN = "contrarian"
    COPY = "copy"
    UNPARSED = "unparsed"
    DRIFT = "drift"
    LEAK = "leak"
    MARKDOWN = "markdown"
    COURTESY = "courtesy"
    REPOSITORY = "repository"
    HOURS = "hours"
    SIDE = "side"


# More of it, and less.
DRESS = {Flaw.MARKDOWN: ("Markdown", "less Markdown"), Flaw.COURTESY: ("courtesies", "fewer courtesies")}
Fit = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class JudgeFinding:
    """One sentence about a judge. `flaw` is None where nothing was found; `p` is corrected for all tests."""

    judge: str
    flaw: Flaw | None
    sentence: str
    p: float


@dataclass(frozen=True, slots=True)
class _Test:
    judge: str
    flaw: Flaw
    p: float
    large: bool
    sentence: Callable[[], str]


def findings(panel: PanelReadings) -> tuple[JudgeFinding, ...]:
    """Return at least one sentence per judge, judge by judge, the surest first."""
    tests = [test for judge in panel.judges.values() for test in _Judge(judge, panel).tests()]
    ordered = sorted(tests, key=lambda test: test.p)
    corrected = {id(test): p for test, p in zip(ordered, holm([test.p for test in ordered]), strict=True)}
    found: list[JudgeFinding] = []
    for judge in panel.judges.values():
        own = [test for test in ordered if test.judge == judge.judge and test.large and corrected[id(test)] <= LEVEL]
        found += [JudgeFinding(judge.judge, test.flaw, test.sentence(), corrected[id(test)]) for test in own]
        if not own:
            found.append(JudgeFinding(judge.judge, None, _unusable_reason(judge), 1.0))
    return tuple(found)


def _unusable_reason(judge: JudgeReadings) -> str:
    duels = _duels_read(judge)
    if duels < FEW_DUELS:
        return f"read only {duels} duels: {FEW_DUELS} are needed to say anything"
    found = first_share(judge)
    if found is None:
        one_order = (
            "" if judge.both.any() else ", but each was read in one order: a preference for a seat does not show"
        )
        return f"nothing unusual in {duels} duels{one_order}"
    share, expected = found
    if expected.low <= share <= expected.high:
        return f"nothing unusual in {duels} duels: {_seat_sentence(judge, 'chooses')}"
    return f"nothing sure in {duels} duels: {_seat_sentence(judge, 'chooses')}, as chance alone may among so many tests"


def _duels_read(judge: JudgeReadings) -> int:
    return int((~np.isnan(judge.seats)).any(axis=(1, 2)).sum())


def _copy_sentence(judge: JudgeReadings, other: JudgeReadings, rest: Sequence[JudgeReadings]) -> str:
    share = float(_same_seats(judge, other).mean())
    said = f"repeats {other.judge}: its replies are the same in {_percent(share)} of the dimensions"
    if rest:
        shares = np.concatenate([_same_seats(judge, third) for third in rest])
        said += f"; with the others {_percent(float(shares.mean()))}"
    return said


def _seat_sentence(judge: JudgeReadings, verb: str = "prefers") -> str:
    if (found := first_share(judge)) is None:
        return ""
    share, expected = found
    seat, shown = ("first", share) if share >= 0.5 else ("second", 1 - share)
    half = 100 * (expected.high - 0.5)
    if not half:
        return "it keeps every choice when the answers are exchanged"
    return f"{verb} the {seat} answer: {_percent(shown)}, expected 50 ± {half:.{int(half < 1)}f}"


class _Judge:
    """The tests of one judge against the rest of its panel."""

    def __init__(self, judge: JudgeReadings, panel: PanelReadings) -> None:
        self.judge, self.panel = judge, panel
        self.copies = [other for other in self._all_others() if _is_copy(judge, other, panel)]
        # A copy repeats the flaw, so it cannot show it; and two copies are one witness.
        self.others: list[JudgeReadings] = []
        for other in self._all_others():
            if _duels_read(other) >= FEW_DUELS and not any(
                _is_copy(other, known, panel) for known in (judge, *self.others)
            ):
                self.others.append(other)

    def tests(self) -> Iterator[_Test]:
        if not (self.judge.attempts.sum(axis=1) > 0).sum() >= FEW_DUELS:
            return
        yield self._unparsed()
        if _duels_read(self.judge) < FEW_DUELS:
            return
        yield self._position()
        yield from self._copy()
        if len(self.others) >= 2:
            yield self._random()
            yield self._draws()
            yield self._constant()
            yield self._contrarian()
            yield self._drift()
            yield from self._regressed()

    def _all_others(self) -> list[JudgeReadings]:
        return [other for other in self.panel.judges.values() if other is not self.judge]

    def _test(self, flaw: Flaw, p: float, large: bool, sentence: Callable[[], str]) -> _Test:
        return _Test(self.judge.judge, flaw, p, large, sentence)

    def _z(self, values: Floats) -> float:
        return signed(values, self.panel.clusters)

    def _unparsed(self) -> _Test:
        asked = int(self.judge.attempts.sum())
        missing = asked - int((~np.isnan(self.judge.seats[:, :, 0])).sum())
        p = binomial_tail(missing, asked, UNPARSED)
        sentence = f"does not give a verdict that can be read: {_percent(missing / asked)} of {asked} replies"
        return self._test(Flaw.UNPARSED, p, missing > UNPARSED * asked, lambda: sentence)

    def _position(self) -> _Test:
        p = 2 * upper(abs(self._z(self.judge.seat_lead)))
        return self._test(Flaw.POSITION, p, True, lambda: _seat_sentence(self.judge))

    def _copy(self) -> Iterator[_Test]:
        for other in self.copies:
            p = _copy_p(self.judge, other)
            yield self._test(Flaw.COPY, p, True, partial(_copy_sentence, self.judge, other, self.others))

    def _random(self) -> _Test:
        """No more consistent than chance with the others, who agree more among themselves; or so with itself. One that
        is consistent with itself alone may be right against all others."""
        judge = self.judge
        mine = [agreement(judge.score, other.score) for other in self.others]
        pairs = [agreement(a.score, b.score) for n, a in enumerate(self.others) for b in self.others[n + 1 :]]
        with_others, among = np.mean(mine, axis=0), np.mean(pairs, axis=0)
        related = upper(abs(self._z(with_others))) <= RELATED
        own = consistency(judge)
        consistent = bool(np.nanstd(own)) and upper(self._z(own)) <= RELATED
        by_others = 1.0 if related or consistent else upper(self._z(among - with_others))
        if not np.nanstd(with_others) or not np.nanstd(judge.score):
            by_others = 1.0  # it has no opinions, which is another flaw
        by_itself = 1.0
        if np.nanstd(own) and not related and not consistent:
            by_itself = majority([upper(self._z(consistency(other) - own)) for other in self.others])

        def sentence() -> str:
            if by_itself <= by_others:
                shares = [repeats(each) for each in (judge, *self.others)]
                return (
                    f"decides at random: with the answers exchanged it repeats its choice in {_percent(shares[0])} of"
                    f" the dimensions, the others in {_percent(float(np.mean(shares[1:])))}"
                )
            agreed = [_same_side(judge, other) for other in self.others]
            rest = [_same_side(a, b) for n, a in enumerate(self.others) for b in self.others[n + 1 :]]
            return (
                f"decides at random: it prefers the same side as another judge in {_percent(float(np.mean(agreed)))} of"
                f" the duels, the others among themselves in {_percent(float(np.mean(rest)))}"
            )

        return self._test(Flaw.RANDOM, min(1.0, 2 * min(by_others, by_itself)), True, sentence)

    def _draws(self) -> _Test:
        mine = self.judge.draws
        p = majority([upper(self._z(mine - other.draws)) for other in self.others])
        share = float(np.nanmean(mine))
        rest = float(np.mean([np.nanmean(other.draws) for other in self.others]))
        sentence = f"calls nearly everything a draw: {_percent(share)}, the others {_percent(rest)}"
        return self._test(Flaw.DRAWS, p, share > MOST_DRAWS, lambda: sentence)

    def _constant(self) -> _Test:
        """The same reply as ever, or the same merged verdict, although the others tell the duels apart."""
        replies, verdicts = usual(self.judge.seats), usual(self.judge.merged)
        ps = [
            majority([upper(self._z(replies - usual(other.seats))) for other in self.others]),
            majority([upper(self._z(verdicts - usual(other.merged))) for other in self.others]),
        ]
        shares = [float(np.nanmean(replies)), float(np.nanmean(verdicts))]
        which = int(shares[0] < NEARLY_ALL)
        rest = float(np.mean([np.nanmean(usual(other.merged if which else other.seats)) for other in self.others]))
        what = ["replies", "duels"][which]
        sentence = f"gives the same verdict in {_percent(shares[which])} of its {what}, the others {_percent(rest)}"
        # Nothing but draws is said above.
        large = shares[which] >= NEARLY_ALL and float(np.nanmean(self.judge.draws)) < NEARLY_ALL
        return self._test(Flaw.CONSTANT, ps[which], large, lambda: sentence)

    def _contrarian(self) -> _Test:
        p = majority([upper(-self._z(agreement(self.judge.score, other.score))) for other in self.others])
        agreed = float(np.mean([_same_side(self.judge, other) for other in self.others]))
        rest = [_same_side(a, b) for n, a in enumerate(self.others) for b in self.others[n + 1 :]]
        sentence = (
            f"sides against the other judges: with one of them in {_percent(agreed)} of the duels, they among"
            f" themselves in {_percent(float(np.mean(rest)))}"
        )
        return self._test(Flaw.CONTRARIAN, p, True, lambda: sentence)

    def _drift(self) -> _Test:
        """A trend over time of its score against the others', or of its preference for a seat."""
        time = np.linspace(-0.5, 0.5, self.panel.count)

        def trend(values: Floats) -> float:
            known = ~np.isnan(values)
            centred = np.where(known, values - (values[known].mean() if known.any() else 0), 0.0)
            moment = np.where(known, time - (time[known].mean() if known.any() else 0), 0.0)
            return self._z(centred * moment)

        scores = [trend(self.judge.score - other.score) for other in self.others]
        ps = [two_sided(scores), 2 * upper(abs(trend(self.judge.seat_lead)))]
        which = int(np.argmin(ps))
        half = time < 0

        def measure(judge: JudgeReadings, rows: NDArray[np.bool_]) -> float:
            if which == 0:
                return win_rate(judge.score[rows]) or 0.0
            lead = judge.seat_lead[rows & judge.both]
            return float(0.5 + lead.mean() / judge.seats[0].size / 2) if len(lead) else 0.5

        def shares(judge: JudgeReadings) -> list[float]:
            return [measure(judge, half), measure(judge, ~half)]

        mine, rest = shares(self.judge), np.mean([shares(other) for other in self.others], axis=0)
        what = ["prefers the challenger", "prefers the first answer"][which]
        sentence = (
            f"changes over the run: {what} in {_percent(mine[0])} of the first half and {_percent(mine[1])} of the"
            f" second, the others {_percent(rest[0])} and {_percent(rest[1])}"
        )
        large = abs((mine[1] - mine[0]) - (rest[1] - rest[0])) >= SHIFT
        return self._test(Flaw.DRIFT, min(1.0, 2 * min(ps)), large, lambda: sentence)

    def _regressed(self) -> Iterator[_Test]:
        """Length, own family and leaks, each with the others held still: by regressions of judge − other on all."""
        judge, panel = self.judge, self.panel
        fits = [regress(judge, other, panel) for other in self.others]
        mine, rest = self._shares(partial(_share_of, leads=panel.ratio))
        what, shown = ("longer", (mine, rest)) if mine >= rest else ("shorter", (1 - mine, 1 - rest))
        said = f"prefers the {what} answer: {_percent(shown[0])}, the others {_percent(shown[1])}"
        yield from self._fitted(Flaw.LENGTH, fits, "length", said, SLOPE, leans=(mine, rest))
        mine, rest = self._shares(lambda each: own_family_rate(each.score, judge.own))
        said = f"prefers its own family: {_percent(mine)} of the duels, the others {_percent(rest)}"
        yield from self._fitted(Flaw.OWN_FAMILY, fits, "own", said, SHIFT)
        mine, rest = self._shares(lambda each: win_rate(each.score))
        said = f"prefers the challenger in {_percent(mine)} of the duels, the others in {_percent(rest)}"
        yield from self._fitted(Flaw.SIDE, fits, "mean", said, 2 * SHIFT, leans=(mine, rest))
        mine, rest = self._shares(partial(_rate_in, rows=panel.leak))
        said = f"prefers answers with a leak: {_percent(mine)} of them, the others {_percent(rest)};"
        said += f" without one {_percent(win_rate(judge.score[~panel.leak]) or 0.0)}"
        yield from self._fitted(Flaw.LEAK, fits, "leak", said, SHIFT)
        for kind, signs in panel.styles.items():
            mine, rest = self._shares(partial(_share_of, leads=signs))
            more = mine >= rest
            shown = (mine, rest) if more else (1 - mine, 1 - rest)
            what = DRESS[Flaw(kind)][not more]
            said = f"prefers answers with {what}: {_percent(shown[0])}, the others {_percent(shown[1])}"
            yield from self._fitted(Flaw(kind), fits, f"style {kind}", said, SHIFT, leans=(mine, rest))
        for flaw in (Flaw.REPOSITORY, Flaw.HOURS):
            tests = [test for test in self._placed() if test.flaw == flaw]
            surest = min(tests, key=lambda test: test.p, default=None)
            # Beside it, the other places seem to be preferred less.
            yield from (test if test is surest else replace(test, large=False) for test in tests)

    def _placed(self) -> Iterator[_Test]:
        """A preference that it has in one repository, or at one time of the day."""
        for place, inside in self.panel.places.items():
            fits = [regress(self.judge, other, self.panel, inside) for other in self.others]
            here = inside > 0
            mine, rest = self._shares(partial(_rate_in, rows=here))
            where = f"in {place[1]}" if place[0] == "repository" else f"from {place[1]}"
            said = f"prefers the challenger {where} in {_percent(mine)} of the duels, the others {_percent(rest)};"
            said += f" elsewhere {_percent(win_rate(self.judge.score[~here]) or 0.0)}"
            yield from self._fitted(Flaw(place[0]), fits, "place", said, 2 * SHIFT, leans=(mine, rest))

    def _shares(self, share: Callable[[JudgeReadings], float | None]) -> tuple[float, float]:
        """Return a share of the judge, and its mean over the others."""
        return share(self.judge) or 0.0, float(np.mean([share(other) or 0.0 for other in self.others]))

    def _fitted(
        self,
        flaw: Flaw,
        fits: Sequence[Fit],
        name: str,
        said: str,
        floor: float,
        *,
        leans: tuple[float, float] | None = None,
    ) -> Iterator[_Test]:
        """Yield the test of a regressor that all `fits` have: with the shares that `leans` compares in both directions,
        else only for more of it."""
        if not all(name in fit for fit in fits):
            return
        zs, size = [fit[name][0] for fit in fits], float(np.median([fit[name][1] for fit in fits]))
        if leans is None:
            yield self._test(flaw, majority([upper(z) for z in zs]), size >= floor, lambda: said)
        else:
            yield self._test(flaw, two_sided(zs), abs(size) >= floor and _leans(*leans), lambda: said)


def _same_seats(one: JudgeReadings, two: JudgeReadings) -> Floats:
    """Return by reading that both parsed the share of dimensions with the same choice."""
    joint = ~np.isnan(one.seats[:, :, 0]) & ~np.isnan(two.seats[:, :, 0])
    shares: Floats = (one.seats[joint] == two.seats[joint]).mean(axis=1)
    return shares


def _copy_p(one: JudgeReadings, two: JudgeReadings) -> float:
    """Return p against agreement in at most `SAME` of the dimensions, readings counted as wholes."""
    same = _same_seats(one, two)
    # Of variables between 0 and 1 with one mean those that are 0 or 1 vary most, so the binomial tail is cautious.
    return binomial_tail(int(same.sum()), len(same), SAME)


def _is_copy(one: JudgeReadings, two: JudgeReadings, panel: PanelReadings) -> bool:
    same = _same_seats(one, two)
    return len(same) >= FEW_DUELS and float(same.mean()) >= 0.95 and _copy_p(one, two) <= LEVEL / len(panel.judges)


def _same_side(one: JudgeReadings, two: JudgeReadings) -> float:
    known = ~np.isnan(one.score) & ~np.isnan(two.score)
    return float((preferred(one.score[known]) == preferred(two.score[known])).mean()) if known.any() else 0.0


def _share_of(judge: JudgeReadings, leads: Floats) -> float:
    """Return how often the judge's preferences are those of `leads`, where there is one: 1 is the challenger's."""
    sides = preferred(judge.score) * np.sign(leads)
    known = sides[~np.isnan(sides) & (sides != 0)]
    return float((known > 0).mean()) if len(known) else 0.5


def _rate_in(judge: JudgeReadings, rows: NDArray[np.bool_]) -> float | None:
    return win_rate(judge.score[rows])


def _leans(mine: float, rest: float) -> bool:
    """Whether the judge prefers one kind of answer more than the others do: a judge that prefers neither is not at
    fault where all others prefer one."""
    return abs(mine - 0.5) > abs(rest - 0.5)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
