"""Service accounts: made by admins, used by tokens only, within their role and their project."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from curation.projects.models import AuditEntry, Member, Project, ServiceAccount, Token
from tests.factories import make_bearer, make_member, make_project, make_user

pytestmark = pytest.mark.django_db
ACCOUNTS = "/api/v1/projects/acme/service-accounts"


def post(client: Client, path: str, body: dict[str, Any], headers: dict[str, str]) -> Any:
    return client.post(path, body, content_type="application/json", headers=headers)


def made_account(client: Client, headers: dict[str, str], **body: Any) -> dict[str, Any]:
    answer = post(client, ACCOUNTS, {"name": "nightly", "role": "curator", **body}, headers)
    assert answer.status_code == 201, answer.content
    made: dict[str, Any] = answer.json()
    return made


def test_a_service_account_works_by_its_token_within_role_and_scopes(
    client: Client, ada: User, headers: dict[str, str]
) -> None:
    make_project("other", user=ada)
    account = made_account(client, headers, note="CI of acme/train")
    assert (account["username"], account["role"], account["created_by"]) == ("nightly@acme", "curator", "ada")
    made = post(client, f"{ACCOUNTS}/nightly@acme/tokens", {"scopes": ["read", "export", "admin"]}, headers)
    assert made.status_code == 201, made.content
    bearer = {"Authorization": f"Bearer {made.json()['token']}"}
    assert client.get("/api/v1/projects/acme", headers=bearer).status_code == 200
    assert client.get("/api/v1/projects/other", headers=bearer).status_code == 404
    assert client.get(ACCOUNTS, headers=bearer).status_code == 403, "a curator is no admin, with any scope"
    review = post(client, "/api/v1/projects/acme/queue/next", {}, bearer)
    assert review.status_code == 403, "the token has no scope `review`"
    log = AuditEntry.objects.filter(project__slug="acme").order_by("id")
    assert [(entry.action, entry.actor.username) for entry in log if entry.actor] == [
        ("service_account.create", "ada"),
        ("token.create", "ada"),
    ]
    assert log[1].data["service_account"] == "nightly@acme"
    listed = client.get(f"{ACCOUNTS}/nightly@acme/tokens", headers=headers).json()["data"]
    assert [row["scopes"] for row in listed] == [["admin", "export", "read"]] and "token" not in listed[0]


def test_it_never_signs_in(client: Client, headers: dict[str, str]) -> None:
    made_account(client, headers)
    user = User.objects.get(username="nightly@acme")
    assert not user.has_usable_password()
    for password in ("", "!", user.password):
        client.post("/login/", {"username": "nightly@acme", "password": password})
        assert "_auth_user_id" not in client.session
    user.set_password("given by mistake")
    user.save()
    page = client.post("/login/", {"username": "nightly@acme", "password": "given by mistake"})
    assert "_auth_user_id" not in client.session and "service account" in page.content.decode()


def test_it_gets_into_no_other_project(client: Client, settings: Settings) -> None:
    settings.PROJECT_CREATORS = {"everyone"}
    ada = make_user("ada", is_staff=True)
    make_project("acme", user=ada)
    make_project("beta", user=ada)
    made_account(client, make_bearer(ada), role="admin")
    script = make_bearer(User.objects.get(username="nightly@acme"))
    link = post(client, "/api/v1/projects/beta/invitations", {"role": "viewer"}, make_bearer(ada)).json()["link"]
    for path, body, headers in (
        ("/api/v1/projects/beta/members", {"username": "nightly@acme", "role": "viewer"}, make_bearer(ada)),
        ("/api/v1/invitations/accept", {"secret": link.rstrip("/").rpartition("/")[2]}, script),
        ("/api/v1/projects", {"slug": "gamma", "name": "Gamma"}, script),
    ):
        answer = post(client, path, body, headers)
        assert (answer.status_code, answer.json()["code"]) == (409, "service_account"), answer.content
        assert "nightly@acme is a service account of acme" in answer.json()["detail"]
    assert [member.project.slug for member in Member.objects.filter(user__username="nightly@acme")] == ["acme"]


def test_removed_accounts_have_no_token_and_their_name_is_not_given_again(
    client: Client, headers: dict[str, str]
) -> None:
    made_account(client, headers)
    secret = post(client, f"{ACCOUNTS}/nightly@acme/tokens", {"scopes": ["read"]}, headers).json()["token"]
    kept = client.delete("/api/v1/projects/acme/members/nightly@acme", headers=headers)
    assert (kept.status_code, kept.json()["code"]) == (409, "service_account")
    assert client.delete(f"{ACCOUNTS}/nightly@acme", headers=headers).status_code == 204
    bearer = {"Authorization": f"Bearer {secret}"}
    assert client.get("/api/v1/projects/acme", headers=bearer).status_code == 401
    assert not Member.objects.filter(user__username="nightly@acme").exists()
    assert post(client, ACCOUNTS, {"name": "nightly"}, headers).status_code == 409
    assert AuditEntry.objects.get(action="service_account.remove").data == {"tokens_revoked": 1}


def test_a_deleted_project_ends_the_tokens_of_its_accounts(client: Client, headers: dict[str, str]) -> None:
    made_account(client, headers)
    secret = post(client, f"{ACCOUNTS}/nightly@acme/tokens", {"scopes": ["read"]}, headers).json()["token"]
    assert client.delete("/api/v1/projects/acme?name=acme", headers=headers).status_code == 202
    assert client.get("/api/v1/projects", headers={"Authorization": f"Bearer {secret}"}).status_code == 401


def test_no_token_is_wider_than_the_one_that_made_it(
    client: Client, ada: User, project: Project, headers: dict[str, str]
) -> None:
    curator = make_member(project, role="curator")
    made_account(client, headers)
    narrow = post(client, f"{ACCOUNTS}/nightly@acme/tokens", {"scopes": ["export"]}, make_bearer(ada, "admin"))
    assert narrow.status_code == 403 and not Token.objects.filter(user__username="nightly@acme").exists()
    person = post(client, f"{ACCOUNTS}/{curator.username}/tokens", {"scopes": ["read"]}, headers)
    assert person.status_code == 404, "a person's tokens are their own"
    for wrong in ({"name": "A"}, {"name": ""}, {"name": "a b"}, {"name": "a", "role": "owner"}):
        assert post(client, ACCOUNTS, wrong, headers).status_code == 422
    assert ServiceAccount.objects.count() == 1


@pytest.mark.usefixtures("signed_in")
def test_the_settings_tab_makes_accounts_and_tokens(client: Client) -> None:
    tab = "/p/acme/settings/service-accounts/"
    page = client.post(tab, {"name": "nightly", "role": "viewer", "note": "CI"}, follow=True).content.decode()
    assert "Tokens of" in page and "nightly@acme" in page
    page = client.post(f"{tab}nightly@acme/tokens/", {"scopes": ["read"], "name": "n"}).content.decode()
    token = Token.objects.get()
    assert "Copy the token now" in page and token.user.username == "nightly@acme"
    client.post(f"{tab}nightly@acme/tokens/{token.pk}/revoke/")
    assert not Token.objects.exists()
    assert "nightly@acme" in client.get(tab).content.decode()
    client.post(f"{tab}nightly@acme/remove/")
    assert "No service account yet" in client.get(tab).content.decode()
