"""Sign-in by an OpenID Connect provider: who gets in as whom, and which roles their groups give."""

import time
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client
from joserfc.jwk import RSAKey
from pytest_django.fixtures import Settings

from curation.projects.models import AuditEntry, Identity, Invitation, Member
from tests.factories import make_bearer, make_member, make_project, make_user
from tests.provider import Provider
from tests.provider import provider as provider

pytestmark = pytest.mark.django_db


def sign_in(client: Client, after: str = "") -> str:
    """Go to the provider and back; the text of the page where it ends."""
    start = client.get("/login/oidc/", {"next": after} if after else {})
    sent_back = httpx.get(start["Location"])
    page = client.get(sent_back.headers["Location"], follow=True)
    return page.content.decode()


PASSWORD = "ada's long password"


def role(project: Any, name: str = "ada") -> str | None:
    return Member.objects.filter(project=project, user__username=name).values_list("role", flat=True).first()


def test_the_first_sign_in_makes_an_account_and_the_next_finds_it(client: Client, provider: Provider) -> None:
    assert "Sign in with Acme" in client.get("/login/").content.decode()
    sign_in(client)
    user = User.objects.get()
    assert (user.username, user.has_usable_password()) == ("ada", False)
    assert client.session["_auth_user_id"] == str(user.pk)
    assert {entry.action for entry in AuditEntry.objects.all()} == {"user.create", "user.link"}
    provider.person["preferred_username"] = "ada.new"
    other = Client()
    sign_in(other)
    assert User.objects.get() == user and other.session["_auth_user_id"] == str(user.pk)


def test_a_group_removed_at_the_provider_is_a_role_removed_at_the_next_sign_in(
    client: Client, provider: Provider, settings: Settings
) -> None:
    acme, beta = make_project("acme"), make_project("beta")
    settings.OIDC_ROLES = {"acme": {"curator": {"team"}, "admin": {"leads"}}, "beta": {"viewer": {"team"}}}
    provider.person["groups"] = ["team", "leads"]
    sign_in(client)
    assert (role(acme), role(beta)) == ("admin", "viewer")
    Invitation.objects.create(
        project=acme, role="admin", invited_by=User.objects.get(), digest="d", expires_at="2999-01-01T00:00Z"
    )
    provider.person["groups"] = ["team"]
    sign_in(client)
    assert (role(acme), role(beta)) == ("curator", "viewer")
    assert not Invitation.objects.exists(), "a former admin brings nobody"
    del provider.person["groups"]
    sign_in(client)
    assert (role(acme), role(beta)) == (None, None)
    changes = AuditEntry.objects.filter(project=acme).order_by("id")
    assert [(entry.action, entry.data["role"]) for entry in changes] == [
        ("member.add", ["", "admin"]),
        ("member.change", ["admin", "curator"]),
        ("member.remove", ["curator", ""]),
    ]


def test_a_token_acts_with_the_role_that_the_groups_give_its_owner_now(
    client: Client, provider: Provider, settings: Settings
) -> None:
    make_project("acme")
    settings.OIDC_ROLES = {"acme": {"viewer": {"team"}, "admin": {"leads"}}}
    provider.person["groups"] = ["leads"]
    sign_in(client)
    headers = make_bearer(User.objects.get())

    def answers() -> tuple[int, int]:
        changed = Client().patch("/api/v1/projects/acme", {}, "application/json", headers=headers)
        return Client().get("/api/v1/projects/acme", headers=headers).status_code, changed.status_code

    provider.person["groups"] = ["team"]
    assert answers() == (200, 200), "until the next sign-in"
    sign_in(client)
    assert answers() == (200, 403)
    del provider.person["groups"]
    sign_in(client)
    assert answers() == (404, 404)


@pytest.mark.parametrize(
    ("local", "groups", "during", "after"),
    [
        ("viewer", ["team"], "reviewer", "viewer"),  # the group's role is higher; the local one comes back
        ("curator", ["team"], "curator", "curator"),  # the local role is higher
        ("admin", ["leads"], "admin", None),  # the mapping names admin, so that only the group gives it
        ("admin", [], None, None),
        ("curator", [], "curator", "curator"),
    ],
)
def test_local_roles_stay_unless_the_mapping_names_them(
    client: Client, provider: Provider, settings: Settings, local: str, groups: list[str], during: str, after: str
) -> None:
    settings.OIDC_ROLES = {"acme": {"reviewer": {"team"}, "admin": {"leads"}}}
    ada = make_user("ada")
    acme, other = make_project("acme"), make_project("other", user=ada, role="admin")
    make_member(acme, ada, local)
    Identity.objects.create(user=ada, issuer=provider.issuer, subject="u-1")
    provider.person["groups"] = groups
    for _ in range(2):
        sign_in(client)
        assert role(acme) == during
    provider.person["groups"] = []
    sign_in(client)
    assert (role(acme), role(other)) == (after, "admin")


def test_a_mapping_that_is_gone_gives_nothing(client: Client, provider: Provider, settings: Settings) -> None:
    acme = make_project("acme")
    provider.person["groups"] = "team"
    settings.OIDC_ROLES = {"acme": {"reviewer": {"team"}}, "gone": {"admin": {"team"}}}
    sign_in(client)
    assert role(acme) == "reviewer"
    settings.OIDC_ROLES = {}
    sign_in(client)
    assert role(acme) is None


def test_groups_are_found_in_userinfo_and_below_a_path(client: Client, provider: Provider, settings: Settings) -> None:
    acme = make_project("acme")
    settings.OIDC_ROLES = {"acme": {"viewer": {"team"}}}
    settings.OIDC_GROUPS_CLAIM = "realm_access.roles"
    provider.person["realm_access"] = {"roles": ["team"]}
    provider.in_userinfo = {"realm_access", "preferred_username"}
    sign_in(client)
    assert role(acme) == "viewer"


IN_NO_FORM = "in a form that names no groups"


@pytest.mark.parametrize(
    ("groups", "named", "said"),
    [
        *(([], named, "leaves out your groups") for named in ({"groups": "src1"}, ["groups"], True, 5)),
        *((groups, None, IN_NO_FORM) for groups in (True, 7, [{"name": "team"}], [["team"]])),
    ],
)
def test_groups_that_are_left_out_or_in_another_form_take_no_role_away(
    client: Client, provider: Provider, settings: Settings, groups: object, named: object, said: str
) -> None:
    acme = make_project("acme")
    settings.OIDC_ROLES = {"acme": {"viewer": {"team"}}}
    provider.person["groups"] = ["team"]
    sign_in(client)
    provider.person |= {"groups": groups} | ({} if named is None else {"_claim_names": named})
    assert said in sign_in(Client())
    assert role(acme) == "viewer"


@pytest.mark.parametrize("email", [["ada@example.org"], {"a": 1}, None])
def test_an_address_in_another_form_is_none(client: Client, provider: Provider, email: object) -> None:
    provider.person["email"] = email
    sign_in(client)
    assert User.objects.get().email == ""


@pytest.mark.parametrize("groups", ["team", ["other", "team"], {"team": {"org-1": "acme.example.org"}}])
def test_groups_are_a_name_a_list_or_the_keys_of_an_object(
    client: Client, provider: Provider, settings: Settings, groups: object
) -> None:
    acme = make_project("acme")
    settings.OIDC_ROLES = {"acme": {"viewer": {"team"}}}
    provider.person |= {"groups": groups, "_claim_names": None}
    sign_in(client)
    assert role(acme) == "viewer"


def test_a_name_that_a_local_account_has_is_not_taken_over(client: Client, provider: Provider) -> None:
    ada = make_user("ada", email="ada@example.org")
    ada.set_password(PASSWORD)
    ada.save()
    provider.person["email"] = "ada@example.org"
    assert "There is an account ada already" in sign_in(client)
    assert "_auth_user_id" not in client.session and not Identity.objects.exists()
    client.force_login(ada)
    assert "Link your account" in client.get("/password/").content.decode()
    sign_in(client)
    client.post("/login/oidc/link/", {"password": PASSWORD})
    again = Client()
    sign_in(again)
    assert again.session["_auth_user_id"] == str(ada.pk) and User.objects.count() == 1


@pytest.mark.parametrize("name", ["", "a b", "x" * 151])
def test_a_name_that_no_account_can_have_is_said(client: Client, provider: Provider, name: str) -> None:
    provider.person["preferred_username"] = name
    assert "gives you the name" in sign_in(client)
    assert not User.objects.exists()


def test_a_closed_account_stays_closed(client: Client, provider: Provider) -> None:
    sign_in(client)
    User.objects.update(is_active=False)
    other = Client()
    assert "account is closed" in sign_in(other)
    assert "_auth_user_id" not in other.session


@pytest.mark.parametrize(
    "changed",
    [
        {"nonce": "another"},
        {"aud": "another", "azp": "winnow"},
        {"iss": "https://evil.example"},
        {"exp": int(time.time()) - 1000},
    ],
)
def test_a_wrong_token_signs_nobody_in(client: Client, provider: Provider, changed: dict[str, object]) -> None:
    provider.changed = changed
    assert "Sign-in with Acme failed" in sign_in(client)
    assert "_auth_user_id" not in client.session and not User.objects.exists()


def test_a_token_without_the_providers_signature_signs_nobody_in(client: Client, provider: Provider) -> None:
    """Also if the provider says that it knows unsigned ones."""
    provider.algorithm = "none"
    assert "failed" in sign_in(client)
    provider.algorithm, provider.signs_with = "RS256", RSAKey.generate_key(2048, {"kid": "k1"})
    assert "failed" in sign_in(client)
    assert not User.objects.exists()


def test_new_keys_of_the_provider_are_fetched(client: Client, provider: Provider) -> None:
    sign_in(client)
    provider.key = RSAKey.generate_key(2048, {"kid": "k2"})
    other = Client()
    sign_in(other)
    assert other.session["_auth_user_id"] == str(User.objects.get().pk)


def test_an_answer_belongs_to_the_session_that_asked(client: Client, provider: Provider) -> None:
    start = client.get("/login/oidc/")
    back = httpx.get(start["Location"]).headers["Location"]
    other = Client()
    assert "failed" in other.get(back, follow=True).content.decode()
    assert "failed" in client.get("/login/oidc/return/?error=access_denied&state=x", follow=True).content.decode()
    assert not User.objects.exists()


def test_a_person_lands_where_they_wanted_on_this_site_only(client: Client, provider: Provider) -> None:
    for wanted, landed in (("/password/", "/password/"), ("https://evil.example/", "/"), ("//evil.example", "/")):
        start = client.get("/login/oidc/", {"next": wanted})
        back = httpx.get(start["Location"]).headers["Location"]
        assert client.get(back)["Location"] == landed


def test_a_provider_that_is_away_is_said(client: Client, settings: Settings) -> None:
    assert client.get("/login/oidc/").status_code == 404
    settings.OIDC_ISSUER, settings.OIDC_CLIENT_ID = "http://127.0.0.1:9", "winnow"
    assert "failed" in client.get("/login/oidc/", follow=True).content.decode()
