import functools

import pytest

from tests.parts import PARTS, missing


@functools.cache
def _lacks(part: str) -> str | None:
    return PARTS[part]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for part in PARTS:
        if item.get_closest_marker(part) and (reason := _lacks(part)):
            missing(reason)
