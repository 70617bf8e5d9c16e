import krippendorff
import numpy as np
import pytest

from judging.statistics.agreement import group_agreement, pair_agreement

WORDS = ("approve", "reject", "refine")


def test_alpha_is_that_of_the_library_with_people_who_decided_different_samples() -> None:
    drawn = np.random.default_rng(3)
    codes = drawn.integers(0, 3, size=(4, 60)).astype(float)
    codes[:, ::2] = codes[0, ::2]
    codes[drawn.random(codes.shape) < 0.3] = np.nan
    units = [[WORDS[int(code)] for code in column if not np.isnan(code)] for column in codes.T]
    found = group_agreement(units)
    assert found.value == pytest.approx(krippendorff.alpha(reliability_data=codes, level_of_measurement="nominal"))
    assert found.interval is not None and found.value is not None
    assert 0.1 < found.interval.high - found.interval.low < 0.5
    assert found.n == sum(len(unit) > 1 for unit in units)


def test_the_interval_covers_the_true_value_as_often_as_it_says() -> None:
    drawn, truth, covered = np.random.default_rng(5), 0.6**2, 0
    # Both say a fair coin's word with probability 0.4 each, else the sample's own: alpha of the population is 0.36.
    for number in range(200):
        own = drawn.integers(0, 2, size=(1, 80)).repeat(2, axis=0)
        said = np.where(drawn.random((2, 80)) < 0.4, drawn.integers(0, 2, size=(2, 80)), own)
        interval = group_agreement([[WORDS[one], WORDS[two]] for one, two in said.T], seed=number).interval
        assert interval is not None
        covered += interval.low <= truth <= interval.high
    assert 180 <= covered <= 198


def test_full_agreement_of_a_few_has_a_wide_interval() -> None:
    units = [["approve"] * 2] * 8 + [["reject"] * 2] * 7
    for found in (group_agreement(units), pair_agreement([(one, two) for one, two in units])):
        assert found.value == 1 and found.interval is not None
        assert 0.4 < found.interval.low < 0.7 and found.interval.high == 1


@pytest.mark.parametrize("units", [[["approve", "reject"]] * 9, [["approve"]] * 50, [["approve", "approve"]] * 50, []])
def test_too_few_samples_and_one_value_only_give_no_figure(units: list[list[str]]) -> None:
    assert group_agreement(units).value is None and group_agreement(units).interval is None
