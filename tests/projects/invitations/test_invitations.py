"""Invitations: made by admins, accepted once by the right person, and silent about which usernames exist."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from curation.projects.models import AuditEntry, Invitation, Member, Project, Role
from tests.factories import make_bearer, make_member, make_user

pytestmark = pytest.mark.django_db
JSON = "application/json"
PATH = "/api/v1/projects/acme/invitations"
PAGE = "/p/acme/settings/members/"


def post(client: Client, path: str, body: dict[str, object], headers: dict[str, str]) -> Any:
    return client.post(path, body, content_type=JSON, headers=headers)


def secret_of(answer: Any) -> str:
    return str(answer.json()["link"]).rstrip("/").rsplit("/", 1)[1]


class TestNames:
    def test_adding_a_member_answers_the_same_for_names_that_exist_and_that_do_not(
        self, client: Client, headers: dict[str, str]
    ) -> None:
        make_user("exists")
        client.get(PATH, headers=headers)  # stores when the token was last used
        answers = []
        for name in ("exists", "absent"):
            with CaptureQueriesContext(connection) as queries:
                answer = post(client, "/api/v1/projects/acme/members", {"username": name}, headers)
            own = {"id", "link", "username", "expires_at", "created_at"}
            body = {key: value for key, value in answer.json().items() if key not in own}
            # Without the values: the same statements, so the same time.
            statements = [re.sub(r"'[^']*'|\d+", "?", query["sql"]) for query in queries]
            answers.append((answer.status_code, body, statements))
        assert answers[0] == answers[1]
        assert answers[0][0] == 202

    def test_the_page_answers_the_same(self, client: Client, project: Project) -> None:
        make_user("exists")
        client.force_login(project.members.get().user)
        given = {"role": "viewer", "expires_in_days": 7}
        pages = [client.post(PAGE, {**given, "username": name}) for name in ("exists", "absent")]
        assert [page.status_code for page in pages] == [201, 201]
        assert client.post(f"{PAGE}add/", {"username": "absent", "role": "viewer"}).status_code == 403
        assert "Add a user without an invitation" not in client.get(PAGE).content.decode()

    def test_staff_add_a_user_at_once(self, client: Client, project: Project) -> None:
        make_user("bob")
        staff = make_bearer(make_member(project, make_user("staff", is_staff=True), Role.ADMIN))
        answer = post(client, "/api/v1/projects/acme/members", {"username": "bob"}, staff)
        assert (answer.status_code, answer.json()["role"]) == (201, "reviewer")

    def test_a_named_invitation_is_for_that_user_alone(self, client: Client, headers: dict[str, str]) -> None:
        secret = secret_of(post(client, "/api/v1/projects/acme/members", {"username": "bob"}, headers))
        bob, eve = make_user("bob"), make_user("eve")
        client.force_login(eve)
        refused = client.get(f"/invitations/{secret}/")
        unknown = client.get("/invitations/unknown/")
        assert (refused.status_code, unknown.status_code) == (404, 404)
        assert client.post(f"/invitations/{secret}/").status_code == 404
        client.force_login(bob)
        assert "invites you to the project acme" in client.get("/?all=1").content.decode()
        found = client.get("/api/v1/invitations", headers=make_bearer(bob)).json()["data"]
        taken = post(client, "/api/v1/invitations/accept", {"id": found[0]["id"]}, make_bearer(bob))
        assert (taken.status_code, taken.json()["username"]) == (201, "bob")
        assert not client.get("/api/v1/invitations", headers=make_bearer(bob)).json()["data"]


class TestLink:
    def test_is_accepted_once_by_whoever_signs_in(self, client: Client, headers: dict[str, str]) -> None:
        made = post(client, PATH, {"role": "curator", "note": "Bob"}, headers)
        link = made.json()["link"]
        assert made.status_code == 201
        to_login = client.get(link)
        assert to_login.status_code == 302
        assert "ask its operator" in client.get(to_login["Location"]).content.decode()
        client.force_login(make_user("bob"))
        assert "as Curator" in client.get(link).content.decode()
        assert client.post(link)["Location"] == "/p/acme/"
        assert Member.objects.get(user__username="bob").role == Role.CURATOR
        client.force_login(make_user("eve"))
        assert (client.get(link).status_code, client.post(link).status_code) == (404, 404)
        assert Member.objects.count() == 2

    def test_is_stored_as_a_hash_and_shown_once(self, client: Client, headers: dict[str, str]) -> None:
        once = {**headers, "Idempotency-Key": "once"}
        secret = secret_of(post(client, PATH, {"note": "Bob"}, once))
        again = post(client, PATH, {"note": "Bob"}, once)
        assert (again.status_code, again.json()["link"]) == (201, None)
        stored = [*Invitation.objects.values(), *AuditEntry.objects.values()]
        assert secret not in str(stored) + client.get(PATH, headers=headers).content.decode()

    def test_expires(self, client: Client, headers: dict[str, str]) -> None:
        link = post(client, PATH, {}, headers).json()["link"]
        Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        client.force_login(make_user("bob"))
        assert client.post(link).status_code == 404
        assert client.get(PATH, headers=headers).json()["data"][0]["state"] == "expired"

    def test_can_be_revoked_by_page_and_rest(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        first, second = (post(client, PATH, {}, headers).json() for _ in range(2))
        assert client.delete(f"{PATH}/{first['id']}", headers=headers).status_code == 204
        client.force_login(project.members.get().user)
        assert client.post(f"/p/acme/settings/invitations/{second['id']}/revoke/").status_code == 302
        client.force_login(make_user("bob"))
        assert {client.get(one["link"]).status_code for one in (first, second)} == {404}

    @pytest.mark.parametrize("closes", [False, True])
    def test_of_a_former_admin_stops_working(
        self, client: Client, project: Project, headers: dict[str, str], closes: bool
    ) -> None:
        eve = make_member(project, make_user("eve"), Role.ADMIN)
        link = post(client, PATH, {"role": "admin"}, make_bearer(eve)).json()["link"]
        if closes:
            eve.is_active = False
            eve.save()
            assert Invitation.objects.get().state == "expired"
        else:
            assert client.delete("/api/v1/projects/acme/members/eve", headers=headers).status_code == 204
        client.force_login(make_user("bob"))
        assert client.post(link).status_code == 404 and not project.members.filter(user__username="bob").exists()

    def test_a_member_keeps_the_role(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        link = post(client, PATH, {"role": "viewer"}, headers).json()["link"]
        client.force_login(project.members.get().user)
        assert client.post(link).status_code == 409
        assert project.members.get().role == Role.ADMIN
        assert Invitation.objects.get().state == "pending"


class TestRules:
    @pytest.mark.parametrize(
        ("body", "path"),
        [({"role": "king"}, "role"), ({"expires_in_days": 0}, "expires_in_days"), ({"note": "n" * 201}, "note"),
         ({"username": "n" * 151}, "username")],
    )  # fmt: skip
    def test_bad_input_is_named(
        self, client: Client, headers: dict[str, str], body: dict[str, object], path: str
    ) -> None:
        answer = post(client, PATH, body, headers)
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, path)

    def test_a_name_is_invited_once(self, client: Client, headers: dict[str, str]) -> None:
        codes = [post(client, PATH, {"username": name}, headers).json().get("code") for name in ("ada", "bob", "bob")]
        assert codes == ["already_member", None, "already_invited"]

    def test_a_token_without_the_scope_cannot_accept(self, client: Client, headers: dict[str, str]) -> None:
        secret = secret_of(post(client, PATH, {}, headers))
        narrow = make_bearer(make_user("bob"), "read", "run")
        assert post(client, "/api/v1/invitations/accept", {"secret": secret}, narrow).status_code == 403

    def test_everything_is_in_the_audit_log(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        first, second = (post(client, PATH, {"role": "viewer"}, headers).json() for _ in range(2))
        client.delete(f"{PATH}/{first['id']}", headers=headers)
        client.force_login(make_user("bob"))
        client.post(second["link"])
        log = AuditEntry.objects.filter(project=project).order_by("id").values_list("action", "actor__username")
        assert list(log) == [("invitation.create", "ada")] * 2 + [
            ("invitation.revoke", "ada"),
            ("invitation.accept", "bob"),
        ]
