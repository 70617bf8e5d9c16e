"""The bucket of a duel."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.panel.buckets import Thresholds, bucket_for


@pytest.mark.parametrize(
    ("score", "flags", "bucket"),
    [
        (100.0, (), "final"),
        (80.0, (), "final"),
        (79.999, (), "refined"),
        (66.0, (), "refined"),
        (65.999, (), "defeat"),
        (0.0, (), "defeat"),
        (None, (), "unparsed"),
        (None, ("leak",), "unparsed"),
        (95.0, ("leak",), "refined"),
        (95.0, ("infra", "flip"), "refined"),
        (95.0, ("flip", "truncated"), "final"),
        (50.0, ("leak",), "defeat"),
        (95.0, ("injection",), "refined"),
    ],
)
def test_bucket_edges_and_flags(score: float | None, flags: tuple[str, ...], bucket: str) -> None:
    assert bucket_for(score, flags=flags, thresholds=Thresholds()) == bucket


def test_thresholds_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ValueError, match="refined <= final"):
        Thresholds(final=50, refined=60)


@given(st.floats(0, 100), st.floats(0, 100), st.sets(st.sampled_from(["leak", "infra", "flip", "injection"])))
def test_a_higher_score_never_falls_into_a_lower_bucket(one: float, two: float, flags: set[str]) -> None:
    rank = {"defeat": 0, "refined": 1, "final": 2}
    low, high = (bucket_for(s, flags=flags, thresholds=Thresholds()) for s in sorted((one, two)))
    assert rank[low] <= rank[high]
