"""`/tokens` and `manage.py token`: tokens by role, the secret shown once, the stored hash."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from curation.projects.access import Principal
from curation.projects.models import AuditEntry, Scope, Token
from curation.projects.tokens.issue import create_token
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
        assert secret not in client.get("/api/v1/tokens", headers=headers).content.decode()
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
        made = create_token(Principal(make_user(), frozenset(Scope)), scopes=["read"], expires_in_days=1)
        headers = {"Authorization": f"Bearer {made.secret}"}
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
