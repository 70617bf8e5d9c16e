"""An identity is linked to an account only by a form that the account's owner confirms, and soon."""

import time
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from curation.projects.models import AuditEntry, Identity, Member
from curation.projects.sign_in import link
from tests.factories import make_project, make_user
from tests.projects.sign_in.test_oidc import sign_in
from tests.provider import Provider
from tests.provider import provider as provider

pytestmark = pytest.mark.django_db
PASSWORD = "a long password"  # noqa: S105
LINK = "/login/oidc/link/"


@pytest.fixture
def victim(client: Client) -> User:
    """Signed in by a password."""
    user = make_user("victim")
    user.set_password(PASSWORD)
    user.save()
    client.force_login(user)
    return user


@pytest.fixture
def attackers(provider: Provider) -> Provider:
    """The browser is signed in at the provider as the attacker."""
    provider.person |= {"sub": "attacker", "preferred_username": "mallory", "email": "mallory@example.org"}
    return provider


def gets_in(client: Client) -> str:
    sign_in(client)
    return User.objects.get(pk=client.session["_auth_user_id"]).username


def test_a_link_that_somebody_sent_links_nothing(client: Client, victim: User, attackers: Provider) -> None:
    page = sign_in(client)  # the victim follows <img src=/login/oidc/> and every redirect
    assert "mallory@example.org" in page and "Link it only if that account is yours" in page
    client.get(LINK)
    assert not Identity.objects.exists()
    assert client.session["_auth_user_id"] == str(victim.pk)
    assert gets_in(Client()) == "mallory"


@pytest.mark.parametrize("password", ["", "wrong", PASSWORD.upper()])
def test_it_needs_the_password(client: Client, victim: User, attackers: Provider, password: str) -> None:
    sign_in(client)
    assert client.post(LINK, {"password": password}).status_code == 422
    assert not Identity.objects.exists()


def test_it_needs_the_csrf_token(victim: User, attackers: Provider) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(victim)
    sign_in(strict)
    assert strict.post(LINK, {"password": PASSWORD}).status_code == 403
    assert not Identity.objects.exists()


def someone_else(client: Client, patch: pytest.MonkeyPatch) -> None:
    client.force_login(make_user("other"))


def much_later(client: Client, patch: pytest.MonkeyPatch) -> None:
    now = time.time() + link.PENDING_SECONDS + 1
    patch.setattr(time, "time", lambda: now)


def twice(client: Client, patch: pytest.MonkeyPatch) -> None:
    client.post(LINK, {"password": PASSWORD})
    Identity.objects.all().delete()


@pytest.mark.parametrize("change", [someone_else, much_later, twice])
def test_it_is_fresh_and_of_this_person(
    client: Client,
    victim: User,
    attackers: Provider,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Client, pytest.MonkeyPatch], None],
) -> None:
    sign_in(client)
    change(client, monkeypatch)
    answer = client.post(LINK, {"password": PASSWORD}, follow=True)
    assert "There is nothing to link any more" in answer.content.decode()
    assert not Identity.objects.exists()


def test_the_owner_links_it(client: Client, victim: User, provider: Provider, settings: Settings) -> None:
    project = make_project("acme")
    settings.OIDC_ROLES = {"acme": {"curator": {"team"}}}
    provider.person["groups"] = ["team"]
    sign_in(client)
    assert not Member.objects.filter(project=project, user=victim).exists()
    client.post(LINK, {"password": PASSWORD})
    assert Member.objects.get(project=project, user=victim).role == "curator"
    assert AuditEntry.objects.filter(action="user.link", actor=victim).exists()
    assert gets_in(Client()) == "victim"


def test_an_account_without_a_password_confirms_by_its_session(client: Client, provider: Provider) -> None:
    sign_in(client)
    provider.person["sub"] = "second"
    sign_in(client)
    assert Identity.objects.count() == 1
    client.post(LINK)
    assert set(Identity.objects.values_list("subject", "user__username")) == {("u-1", "ada"), ("second", "ada")}


@pytest.mark.parametrize("sent", [None, ["client_secret_basic"], ["client_secret_post"]])
def test_the_secret_is_sent_as_the_provider_takes_it(
    client: Client, provider: Provider, sent: list[str] | None
) -> None:
    provider.secret_sent = sent
    assert gets_in(client) == "ada"


def test_another_way_to_prove_the_client_is_named(client: Client, provider: Provider) -> None:
    provider.secret_sent = ["private_key_jwt"]
    answer = client.get("/login/oidc/", follow=True).content.decode()
    assert "private_key_jwt" in answer and "client_secret_post" in answer


def test_what_the_provider_refuses_is_named(client: Client, provider: Provider, settings: Settings) -> None:
    settings.OIDC_CLIENT_SECRET = "an old one"  # noqa: S105
    assert "(invalid_grant)" in sign_in(client)


def test_google_sends_no_name(client: Client, provider: Provider) -> None:
    provider.person = {"sub": "1", "email": "ada@example.org", "email_verified": True, "name": "Ada"}
    assert gets_in(client) == "ada@example.org"


@pytest.mark.parametrize("verified", [False, "true", None])
def test_an_address_that_is_not_verified_is_no_name(client: Client, provider: Provider, verified: object) -> None:
    provider.person = {"sub": "1", "email": "ada@example.org", "email_verified": verified, "name": "Ada"}
    page = sign_in(client)
    assert "sends no preferred_username" in page and "OIDC_USERNAME_CLAIM" in page
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("sent", "role"), [(["/team"], "viewer"), (["/team/leads"], "admin"), (["/other/team"], None), (["leads"], None)]
)
def test_keycloaks_paths_are_groups(
    client: Client, provider: Provider, settings: Settings, sent: list[str], role: str | None
) -> None:
    make_project("acme")
    settings.OIDC_ROLES = {"acme": {"viewer": {"team"}, "admin": {"team/leads"}}}
    provider.person["groups"] = sent
    sign_in(client)
    assert Member.objects.filter(user__username="ada").values_list("role", flat=True).first() == role
