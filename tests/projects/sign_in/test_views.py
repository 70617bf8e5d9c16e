"""The page to change one's password."""

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from tests.factories import make_user

pytestmark = pytest.mark.django_db
OLD, NEW = "correct horse battery", "staple of the day 7"


def test_a_person_changes_their_password(client: Client) -> None:
    user = make_user("ada")
    user.set_password(OLD)
    user.save()
    client.force_login(user)
    elsewhere = Client()
    elsewhere.force_login(user)
    assert 'href="/password/"' in client.get("/", follow=True).content.decode()

    wrong = client.post("/password/", {"old_password": "no", "new_password1": NEW, "new_password2": NEW})
    weak = client.post("/password/", {"old_password": OLD, "new_password1": "12345", "new_password2": "12345"})
    user.refresh_from_db()
    assert (wrong.status_code, weak.status_code, user.check_password(OLD)) == (200, 200, True)

    client.post("/password/", {"old_password": OLD, "new_password1": NEW, "new_password2": NEW})
    user.refresh_from_db()
    assert user.check_password(NEW)
    assert client.get("/password/").status_code == 200
    assert elsewhere.get("/password/").status_code == 302


def test_a_session_ends_when_it_expires(client: Client) -> None:
    client.force_login(make_user())
    assert client.get("/password/").status_code == 200
    session = Session.objects.get()
    session.expire_date = timezone.now()
    session.save()
    assert client.get("/password/")["Location"].startswith("/login/")


def test_a_stranger_is_sent_to_the_sign_in(client: Client) -> None:
    assert client.get("/password/")["Location"].startswith("/login/")
