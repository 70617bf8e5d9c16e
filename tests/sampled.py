"""Cases of which the tests run some and `make soak` all."""

from collections.abc import Iterable

import pytest
from _pytest.mark import ParameterSet


def one_of(count: int, cases: Iterable[object]) -> list[ParameterSet]:
    """One of so many cases, beginning with the first, is a test of each run; the others are slow."""
    return [pytest.param(case, marks=[pytest.mark.slow] if number % count else []) for number, case in enumerate(cases)]
