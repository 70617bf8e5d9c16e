"""`/tokens` and `manage.py token`: tokens by role, the secret shown once, the stored hash."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from curation.notifications.models import Notification
from curation.projects.access import Principal
from curation.projects.models import AuditEntry, Member, Scope, Token
from curation.projects.tokens.issue import MOST_GENERATIONS, create_token
from curation.web.models import IdempotentResponse
from tests.factories import make_bearer, make_project, make_user

pytestmark = pytest.mark.django_db
JSON = "application/json"


class TestCreate:
    def test_the_secret_is_shown_once_and_works(self, client: Client) -> None:
        ada = make_user("ada")
        headers = make_bearer(ada, "read", "run")
        answer = client.post("/api/v1/tokens", {"name": "x", "scopes": ["read"]}, content_type=JSON, headers=headers)
        assert answer.status_code == 201
        secret = answer.json()["token"]
        works = client.get("/api/v1/projects", headers={"Authorization": f"Bearer {secret}"})
        assert works.status_code == 200
        listed = client.get("/api/v1/tokens?sort=id", headers=headers)
        assert secret not in listed.content.decode() and listed.json()["data"][-1]["name"] == "x"  # the oldest first
        assert secret not in str(list(Token.objects.values())) + str(list(AuditEntry.objects.values()))

    def test_a_credential_cannot_hand_on_what_it_lacks(self, client: Client) -> None:
        headers = make_bearer(make_user(), "read")
        answer = client.post("/api/v1/tokens", {"scopes": ["read", "admin"]}, content_type=JSON, headers=headers)
        assert answer.status_code == 403
        assert Token.objects.count() == 1

    @pytest.mark.parametrize("body", [{"scopes": ["fly"]}, {"scopes": []}, {"expires_in_days": 0}, {"days": 1}])
    def test_bad_input_is_refused(self, client: Client, body: dict[str, object]) -> None:
        answer = client.post("/api/v1/tokens", body, content_type=JSON, headers=make_bearer(make_user()))
        assert answer.status_code == 422
        assert Token.objects.count() == 1

    def test_a_repeated_key_returns_the_same_token_without_its_secret(self, client: Client) -> None:
        headers = {**make_bearer(make_user()), "Idempotency-Key": "once"}
        first = client.post("/api/v1/tokens", {"name": "x"}, content_type=JSON, headers=headers)
        again = client.post("/api/v1/tokens", {"name": "x"}, content_type=JSON, headers=headers)
        assert (again.status_code, again.json()["id"], again.json()["token"]) == (201, first.json()["id"], None)
        assert Token.objects.filter(name="x").count() == 1
        assert first.json()["token"].encode() not in bytes(IdempotentResponse.objects.get().body)


class TestUse:
    def test_an_expired_token_is_refused(self, client: Client) -> None:
        _, secret = create_token(Principal(make_user(), frozenset(Scope)), scopes=["read"], expires_in_days=1)
        headers = {"Authorization": f"Bearer {secret}"}
        assert client.get("/api/v1/projects", headers=headers).status_code == 200
        Token.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        answer = client.get("/api/v1/projects", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")

    def test_a_token_of_a_disabled_user_is_refused(self, client: Client) -> None:
        user = make_user()
        headers = make_bearer(user)
        user.is_active = False
        user.save()
        assert client.get("/api/v1/projects", headers=headers).status_code == 401

    def test_last_use_is_noted(self, client: Client) -> None:
        client.get("/api/v1/projects", headers=make_bearer(make_user()))
        assert Token.objects.get().last_used_at is not None


class TestRevoke:
    def test_ends_it_at_once(self, client: Client) -> None:
        headers = make_bearer(make_user())
        token = Token.objects.get()
        assert client.delete(f"/api/v1/tokens/{token.pk}", headers=headers).status_code == 204
        assert client.get("/api/v1/projects", headers=headers).status_code == 401
        assert AuditEntry.objects.filter(action="token.revoke", subject=token.prefix).exists()

    def test_others_tokens_are_not_found(self, client: Client) -> None:
        make_bearer(make_user())
        foreign = Token.objects.get()
        answer = client.delete(f"/api/v1/tokens/{foreign.pk}", headers=make_bearer(make_user()))
        assert answer.status_code == 404
        assert Token.objects.filter(pk=foreign.pk).exists()

    def test_a_lesser_token_cannot_end_a_greater_one(self, client: Client) -> None:
        ada = make_user()
        make_bearer(ada)
        greater = Token.objects.get()
        assert client.delete(f"/api/v1/tokens/{greater.pk}", headers=make_bearer(ada, "read")).status_code == 403


class TestPage:
    def test_shows_the_secret_once(self, client: Client) -> None:
        ada = make_user()
        make_project("shell", user=ada, role="viewer")
        client.force_login(ada)
        answer = client.post("/p/shell/settings/tokens/", {"scopes": ["read"], "name": "x", "expires_in_days": 7})
        assert answer.status_code == 201
        secret = answer.context["secret"]
        assert secret.startswith("wn_") and secret in answer.content.decode()
        assert "no-store" in answer["Cache-Control"]
        assert secret not in client.get("/p/shell/settings/tokens/").content.decode()

    def test_revokes_only_ones_own(self, client: Client) -> None:
        ada = make_user()
        make_project("shell", user=ada)
        make_bearer(make_user())
        client.force_login(ada)
        assert client.post(f"/p/shell/settings/tokens/{Token.objects.get().pk}/revoke/").status_code == 404
        assert Token.objects.exists()


class TestCommand:
    def run(self, *words: str) -> str:
        out = StringIO()
        call_command("token", *words, stdout=out, stderr=StringIO())
        return out.getvalue()

    def test_create_prints_the_token_alone(self) -> None:
        make_user("demo")
        printed = self.run("create", "--user", "demo", "--scopes", "read,run,export", "--expires-days", "3")
        assert printed.startswith("wn_") and printed.count("\n") == 1
        row = Token.objects.get()
        assert row.scopes == ["export", "read", "run"]
        assert row.expires_at is not None

    @pytest.mark.parametrize(
        "words",
        [
            ("create", "--user", "nobody"),
            ("create", "--user", "demo", "--scopes", "fly"),
            ("create", "--user", "demo", "--scopes", ","),
            ("create", "--user", "demo", "--expires-days", "0"),
            ("list", "--user", "nobody"),
            ("revoke", "99"),
            ("revoke", "x"),
        ],
    )
    def test_refusals_are_errors(self, words: tuple[str, ...]) -> None:
        make_user("demo")
        with pytest.raises(CommandError):
            self.run(*words)
        assert not Token.objects.exists()

    def test_list_and_revoke(self) -> None:
        make_user("demo")
        secret = self.run("create", "--user", "demo", "--name", "nightly").strip()
        listed = self.run("list", "--user", "demo")
        assert "nightly" in listed and secret not in listed
        self.run("revoke", str(Token.objects.get().pk))
        assert not Token.objects.exists()


OWN = "/api/v1/tokens"
ACCOUNT = "/api/v1/projects/acme/service-accounts"


def works(client: Client, secret: str) -> bool:
    return client.get("/api/v1/projects", headers={"Authorization": f"Bearer {secret}"}).status_code == 200


def make(client: Client, headers: dict[str, str], path: str = OWN, **body: Any) -> dict[str, Any]:
    answer = client.post(path, {"scopes": ["read"], **body}, content_type="application/json", headers=headers)
    assert answer.status_code == 201, answer.content
    found: dict[str, Any] = answer.json()
    return found


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@pytest.fixture
def admin(client: Client) -> User:
    ada = make_user("ada")
    make_project("acme", user=ada)
    return ada


@pytest.fixture
def bot(client: Client, admin: User) -> str:
    """The address of the tokens of a service account."""
    body = {"name": "bot", "role": "admin"}
    headers = make_bearer(admin, "admin")
    answer = client.post(ACCOUNT, body, content_type="application/json", headers=headers)
    return f"{ACCOUNT}/{answer.json()['username']}/tokens"


@pytest.mark.parametrize("asked", [None, 1, 30, 3650])
@pytest.mark.parametrize("of_bot", [False, True])
def test_none_outlives_the_token_that_made_it(
    client: Client, admin: User, bot: str, asked: int | None, of_bot: bool
) -> None:
    headers = make_bearer(admin, "read", "admin")
    ends = timezone.now() + timedelta(days=2)
    Token.objects.order_by("-id").filter(parent=None).update(expires_at=ends)
    made = make(client, headers, bot if of_bot else OWN, expires_in_days=asked)
    row = Token.objects.get(pk=made["id"])
    assert row.expires_at is not None and row.expires_at <= ends
    assert works(client, made["token"])
    Token.objects.filter(parent=None).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert not works(client, made["token"])


@pytest.mark.parametrize("of_bot", [False, True])
def test_a_whole_line_is_revoked_with_its_first_token(client: Client, admin: User, bot: str, of_bot: bool) -> None:
    headers = make_bearer(admin, "read", "admin")
    first = Token.objects.latest("id")
    child = make(client, headers, bot if of_bot else OWN, scopes=["read", "admin"])["token"]
    grandchild = make(client, bearer(child), bot)["token"]
    assert works(client, child) and works(client, grandchild)
    client.force_login(admin)
    client.post(f"/p/acme/settings/tokens/{first.pk}/revoke/")
    assert not Token.objects.filter(pk=first.pk).exists()
    assert not works(client, child) and not works(client, grandchild)


def test_a_line_ends_with_its_person(client: Client, admin: User, bot: str) -> None:
    child = make(client, make_bearer(admin, "read", "admin"), bot, scopes=["read", "admin"])["token"]
    grandchild = make(client, bearer(child), bot)["token"]
    User.objects.filter(pk=admin.pk).update(is_active=False)
    assert not works(client, child) and not works(client, grandchild)


def test_a_line_has_an_end(client: Client, admin: User) -> None:
    headers = make_bearer(admin, "read")
    for _ in range(MOST_GENERATIONS):
        headers = bearer(make(client, headers)["token"])
    answer = client.post(OWN, {"scopes": ["read"]}, content_type="application/json", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many")


def test_no_account_of_a_token_can_more_than_the_token(client: Client, admin: User, bot: str) -> None:
    headers = make_bearer(admin, "read", "admin")
    for path in (OWN, bot):
        answer = client.post(path, {"scopes": ["export"]}, content_type="application/json", headers=headers)
        assert answer.status_code == 403
    child = bearer(make(client, headers, bot)["token"])
    for path in (OWN, bot):
        answer = client.post(path, {"scopes": ["admin"]}, content_type="application/json", headers=child)
        assert answer.status_code == 403
    assert Member.objects.get(user__username="bot@acme").role == "admin"


def test_a_token_of_a_session_stands_alone(client: Client, admin: User) -> None:
    client.force_login(admin)
    client.post("/p/acme/settings/tokens/", {"name": "mine", "scopes": ["read"]})
    row = Token.objects.get()
    assert (row.parent, row.expires_at) == (None, None)


def test_the_audit_log_says_which_token_made_it(client: Client, admin: User) -> None:
    make(client, make_bearer(admin, "read"))
    parent = Token.objects.earliest("id")
    assert AuditEntry.objects.filter(action="token.create").latest("id").data["made_by"] == parent.prefix


@pytest.mark.parametrize(
    ("scope", "method", "path"),
    [
        ("read", "GET", "notifications"),
        ("review", "POST", "notifications/read"),
        ("review", "POST", "notifications/{}/read"),
        ("read", "GET", "preferences"),
        ("review", "PATCH", "preferences"),
    ],
)
def test_what_is_the_callers_own_needs_a_scope_too(client: Client, scope: str, method: str, path: str) -> None:
    """A token to read changes no keys by which a person decides, and one for exports reads no mentions."""
    user = make_user()
    told = Notification.objects.create(user=user, project=make_project(user=user), kind="mention", text="x", link="/")
    address = f"/api/v1/{path.format(told.pk)}"
    for given in ("read", "review", "run", "export", "admin"):
        answer = client.generic(method, address, "{}", "application/json", headers=make_bearer(user, given))
        assert (answer.status_code == 403) is (given != scope), given
