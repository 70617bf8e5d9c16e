"""Statistics of judges against the same figures of SciPy and of statsmodels."""

import numpy as np
import pytest
from scipy import stats

from judging.panel.rubric import DIMENSIONS
from judging.panel.scoring import ORDERS, DuelScore, JudgeScore, OrderedVerdict
from judging.statistics.acceptance import acceptance
from judging.statistics.agreement import pair_agreement
from judging.statistics.gate import GateDuel, GateSettings
from judging.statistics.judges.contrasts import agreement, regress, signed, two_sided, upper
from judging.statistics.judges.readings import JudgedDuel, PanelReadings, panel_readings
from judging.statistics.judges.summary import summarise
from judging.statistics.rates import clustered_wilson
from tests.judging.statistics.worlds import on_controls

PANEL = ("a", "b", "c")
ROWS = 120


def _judge_score(judge: str, score: float) -> JudgeScore:
    return JudgeScore(judge, score, dict.fromkeys(DIMENSIONS, score), ())


@pytest.fixture(scope="module")
def panel() -> PanelReadings:
    """Judges with scores in tenths, answers of different lengths, a fifth with a leak, instances of one duel."""
    drawn = np.random.default_rng(11)
    quality = drawn.normal(0, 0.2, ROWS)
    duels = []
    for row in range(ROWS):
        lengths = int(drawn.integers(40, 400)), int(drawn.integers(40, 400))
        pull = 0.1 * np.log2(lengths[1] / lengths[0])
        scores = np.clip(np.round(0.5 + quality[row] + pull + drawn.normal(0, 0.15, 3), 1), 0, 1)
        judges = tuple(_judge_score(name, float(score)) for name, score in zip(PANEL, scores, strict=True))
        replies = tuple(
            OrderedVerdict(name, order, dict(zip(DIMENSIONS, drawn.integers(0, 3, 5).tolist(), strict=True)))
            for name in PANEL
            for order in ORDERS
        )
        score = DuelScore(100 * float(scores.mean()), {}, judges, parsed=True, flipped=False, spread=0.0)
        duels.append(JudgedDuel(replies, score, f"i{row}", leak=row % 5 == 0, lengths=lengths))
    return panel_readings(duels, panel=PANEL)


def test_the_length_slope_is_that_of_linregress(panel: PanelReadings) -> None:
    for summary in summarise(panel):
        expected = stats.linregress(panel.ratio, panel.judges[summary.judge].score).slope
        assert summary.length_slope == pytest.approx(100 * expected)


def test_the_agreement_of_two_judges_is_pearsons_r(panel: PanelReadings) -> None:
    one, two = panel.judges["a"].score, panel.judges["b"].score
    assert float(np.nanmean(agreement(one, two))) == pytest.approx(stats.pearsonr(one, two).statistic)


def test_win_rates_are_the_probability_of_superiority(panel: PanelReadings) -> None:
    """Mann and Whitney's U by n against an even score counts ties as one half, too."""
    for summary in summarise(panel):
        score = panel.judges[summary.judge].score
        for rate, part in ((summary.win_rate, score), (summary.halves[0], score[:60]), (summary.halves[1], score[60:])):
            assert rate == pytest.approx(stats.mannwhitneyu(part, [0.5]).statistic / len(part))
        for rate, part in zip(summary.by_leak, (score[panel.leak], score[~panel.leak]), strict=True):
            assert rate == pytest.approx(stats.mannwhitneyu(part, [0.5]).statistic / len(part))


def test_the_effects_of_a_regression_are_those_of_least_squares(panel: PanelReadings) -> None:
    judge, other = panel.judges["a"], panel.judges["b"]
    found = regress(judge, other, panel)
    low, high = np.quantile(panel.ratio, [0.05, 0.95])
    columns = {
        "mean": np.ones(ROWS),
        "length": panel.ratio.clip(low, high),
        "leak": panel.leak.astype(float),
        "time": np.linspace(-0.5, 0.5, ROWS),
    }
    fitted, *_ = np.linalg.lstsq(np.stack(list(columns.values()), axis=1), judge.score - other.score, rcond=None)
    assert {name: effect for name, (_, effect) in found.items()} == pytest.approx(
        dict(zip(columns, fitted, strict=True))
    )


def test_the_deviate_of_a_mean_has_the_p_of_the_t_test(panel: PanelReadings) -> None:
    values = panel.judges["a"].score - panel.judges["c"].score + 0.03
    values = values[np.abs(values) > 0]
    expected = stats.ttest_1samp(values, 0)
    assert upper(abs(signed(values, np.arange(len(values))))) == pytest.approx(expected.pvalue / 2)
    assert upper(1.3) == pytest.approx(stats.norm.sf(1.3))


def test_the_p_of_two_judges_is_that_of_the_worse() -> None:
    """With two others the majority is both: the largest p, doubled for two directions."""
    assert two_sided([2.1, 2.9]) == pytest.approx(2 * stats.norm.sf(2.1))
    assert two_sided([-2.1, -2.9]) == two_sided([2.1, 2.9])


def test_kappa_of_two_reviewers_is_that_of_statsmodels() -> None:
    """statsmodels 0.15.0: cohens_kappa([[20, 5], [10, 15]]).kappa."""
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert pair_agreement(pairs).value == pytest.approx(0.4)


def test_the_interval_of_clusters_of_one_is_wilsons() -> None:
    expected = stats.binomtest(7, 20).proportion_ci(0.95, method="wilson")
    found = clustered_wilson([(int(row < 7), 1) for row in range(20)])
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_leaving_a_judge_out_is_the_gate_of_the_others_with_scipys_bootstrap(panel: PanelReadings) -> None:
    scores = {name: np.clip(readings.score + 0.08, 0, 1) for name, readings in panel.judges.items()}
    duels = [
        GateDuel(
            DuelScore(
                100 * float(np.mean([scores[name][row] for name in PANEL])),
                {},
                tuple(_judge_score(name, float(scores[name][row])) for name in PANEL),
                parsed=True,
                flipped=False,
                spread=0.0,
            ),
            "",
            f"i{row}",
        )
        for row in range(ROWS)
    ]
    controls = on_controls(*PANEL)
    result = acceptance(duels, panel=PANEL, controls=controls, settings=GateSettings(resamples=20_000))
    assert [one.judges for one in result.left_out] == [("a",), ("b",), ("c",)]
    for one in result.left_out:
        rest = [name for name in PANEL if name not in one.judges]
        points = 200 * np.mean([scores[name] for name in rest], axis=0) - 100
        # The widened quantile of 120 clusters.
        level = stats.norm.cdf((ROWS / (ROWS - 1)) ** 0.5 * stats.t.ppf(0.05, ROWS - 1))
        drawn = stats.bootstrap((points,), np.mean, n_resamples=20_000, method="percentile", rng=1)
        assert one.gate.margin == pytest.approx(float(points.mean()))
        assert one.gate.lcb == pytest.approx(float(np.quantile(drawn.bootstrap_distribution, level)), abs=0.15)
