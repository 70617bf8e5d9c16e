"""Wrong passwords: limited by user and address together, by address, and by user over many addresses."""

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from curation.projects.sign_in import limits
from tests.factories import make_user

pytestmark = pytest.mark.django_db
RIGHT, WRONG = "correct horse battery", "wrong"


@pytest.fixture
def ada(settings: Settings) -> User:
    settings.AXES_FAILURE_LIMIT = 3
    user = make_user("ada")
    user.set_password(RIGHT)
    user.save()
    return user


def sign_in(address: str, password: str = WRONG, username: str = "ada", **headers: str) -> int:
    answer = Client(REMOTE_ADDR=address).post("/login/", {"username": username, "password": password}, headers=headers)
    return answer.status_code


def test_one_address_locks_out_only_itself(ada: User) -> None:
    statuses = [sign_in("192.0.2.1") for _ in range(30)]
    assert statuses[0] == 200 and statuses[-1] == 429
    assert sign_in("192.0.2.1", RIGHT) == 429
    assert sign_in("192.0.2.2", RIGHT) == 302


def test_many_addresses_of_one_user_are_limited(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_OF_USER", 6)
    for number in range(6):
        sign_in(f"192.0.2.{number}")
    assert sign_in("192.0.2.99", RIGHT) == 429


def test_many_users_of_one_address_are_limited(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_OF_ADDRESS", 6)
    for number in range(6):
        sign_in("192.0.2.1", username=f"guess{number}")
    assert sign_in("192.0.2.1", RIGHT) == 429
    assert sign_in("192.0.2.2", RIGHT) == 302


def test_behind_a_trusted_proxy_the_address_is_the_one_it_appended(ada: User, settings: Settings) -> None:
    settings.TRUST_PROXY = True
    for _ in range(4):
        sign_in("10.0.0.1", **{"X-Forwarded-For": "203.0.113.9, 192.0.2.1"})
    assert sign_in("10.0.0.1", RIGHT, **{"X-Forwarded-For": "192.0.2.1"}) == 429
    assert sign_in("10.0.0.1", RIGHT, **{"X-Forwarded-For": "192.0.2.1, 192.0.2.2"}) == 302


def test_without_a_proxy_the_header_is_not_believed(ada: User) -> None:
    for number in range(4):
        sign_in("192.0.2.1", **{"X-Forwarded-For": f"203.0.113.{number}"})
    assert sign_in("192.0.2.1", RIGHT, **{"X-Forwarded-For": "203.0.113.99"}) == 429


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
