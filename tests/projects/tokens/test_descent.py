"""A token makes no token that lives longer or can more than itself, and those that it made end with it."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from curation.projects.models import AuditEntry, Member, Token
from curation.projects.tokens.issue import MOST_GENERATIONS
from tests.factories import make_bearer, make_project, make_user

pytestmark = pytest.mark.django_db
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
