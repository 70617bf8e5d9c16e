"""`manage.py account`: how people get accounts where no provider signs them in."""

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from curation.projects.models import AuditEntry
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db


def test_a_new_account_signs_in_with_the_password_that_was_printed(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("account", "maya")
    password = capsys.readouterr().out.splitlines()[0].split()[-1]
    user = User.objects.get(username="maya")
    assert user.check_password(password)
    assert (user.is_staff, user.is_superuser) == (False, False)
    entry = AuditEntry.objects.get(action="account.create")
    assert entry.subject == "maya" and password not in str(entry.data)


@pytest.mark.parametrize("name", ["taken", "two words", ""])
def test_a_name_that_cannot_be_used_is_refused_in_words(name: str) -> None:
    make_user(username="taken")
    with pytest.raises(CommandError, match=r"already exists|valid username|cannot be blank"):
        call_command("account", name)
    assert User.objects.count() == 1


def test_the_page_where_members_are_added_says_how_accounts_are_made(client: Client) -> None:
    user = make_user()
    client.force_login(user)
    page = client.get(reverse("member-list", args=[make_project(user=user).slug])).content.decode()
    assert "manage.py account NAME" in page
