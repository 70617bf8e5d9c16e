import functools

import pytest
from django.conf import settings
from django.db import connection

from tests.parts import PARTS, missing
from tests.product import product as product


@functools.cache
def _lacks(part: str) -> str | None:
    return PARTS[part]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for part in PARTS:
        if item.get_closest_marker(part) and (reason := _lacks(part)):
            missing(reason)


@pytest.fixture(scope="session", autouse=True)
def quick_passwords() -> None:
    """A hash that is slow on purpose would take most of the time of tests that make users."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """On SQLite the tests use a file, as the product does: in memory, threads are refused where in a file they wait."""
    if connection.vendor == "sqlite":
        connection.settings_dict["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / "winnow.sqlite3")
