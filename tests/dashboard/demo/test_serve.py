"""`manage.py serve`: the first administrator. The container's tests run all of it."""

import re

import pytest
from django.contrib.auth.models import User

from curation.dashboard.management.commands.serve import make_first_user

pytestmark = pytest.mark.django_db


def test_the_first_administrator_has_the_password_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    make_first_user()
    make_first_user()

    passwords = re.findall(r"Sign in as admin with the password (\S+) and", caplog.text)
    assert len(passwords) == 1
    assert User.objects.get().is_superuser
    assert User.objects.get().check_password(passwords[0])


def test_a_site_that_has_users_gets_no_administrator(caplog: pytest.LogCaptureFixture) -> None:
    User.objects.create_user("ada", password="a-password-of-this-test")

    make_first_user()

    assert [user.username for user in User.objects.all()] == ["ada"]
    assert "password" not in caplog.text
