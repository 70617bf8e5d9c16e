"""Members by page and REST, and the audit log."""

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from curation.projects.models import AuditEntry, Member, Project, Role
from curation.web.problems import Problem
from tests.factories import make_member, make_project, make_user

pytestmark = pytest.mark.usefixtures("signed_in")
JSON = "application/json"
PATH = "/api/v1/projects/acme/members"


@pytest.fixture
def ada(db: None) -> User:
    return make_user("ada", is_staff=True)


class TestRest:
    def test_adds_changes_and_removes(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        make_user("bob")
        body = {"username": "bob", "role": "viewer"}
        assert client.post(PATH, body, content_type=JSON, headers=headers).json()["role"] == "viewer"
        changed = client.patch(f"{PATH}/bob", {"role": "curator"}, content_type=JSON, headers=headers)
        assert changed.json()["role"] == "curator"
        assert [row["username"] for row in client.get(PATH, headers=headers).json()["data"]] == ["bob", "ada"]
        assert client.delete(f"{PATH}/bob", headers=headers).status_code == 204
        assert not project.members.filter(user__username="bob").exists()
        actions = list(AuditEntry.objects.filter(subject="bob").order_by("id").values_list("action", flat=True))
        assert actions == ["member.add", "member.change", "member.remove"]

    @pytest.mark.parametrize(
        ("body", "path"),
        [({"username": "nobody"}, "username"), ({"username": "bob", "role": "king"}, "role"), ({}, "username")],
    )
    def test_bad_input_is_named(self, client: Client, headers: dict[str, str], body: dict[str, str], path: str) -> None:
        make_user("bob")
        answer = client.post(PATH, body, content_type=JSON, headers=headers)
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, path)
        assert Member.objects.count() == 1

    def test_a_member_cannot_be_added_twice(self, client: Client, headers: dict[str, str]) -> None:
        answer = client.post(PATH, {"username": "ada"}, content_type=JSON, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (409, "already_member")

    def test_the_last_admin_stays(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        removed = client.delete(f"{PATH}/ada", headers=headers)
        changed = client.patch(f"{PATH}/ada", {"role": "viewer"}, content_type=JSON, headers=headers)
        assert (removed.json()["code"], changed.json()["code"]) == ("last_admin", "last_admin")
        assert project.members.get().role == Role.ADMIN
        make_member(project, make_user("bob"), Role.ADMIN)
        assert client.delete(f"{PATH}/ada", headers=headers).status_code == 204


class TestPages:
    def test_adds_a_member(self, client: Client, project: Project) -> None:
        make_user("bob")
        answer = client.post("/p/acme/settings/members/add/", {"username": "bob", "role": "reviewer"})
        assert answer.status_code == 302
        assert project.members.get(user__username="bob").role == Role.REVIEWER

    def test_an_unknown_name_stays_in_its_field(self, client: Client, project: Project) -> None:
        answer = client.post("/p/acme/settings/members/add/", {"username": "bobb", "role": "reviewer"})
        assert answer.status_code == 422
        assert "bobb" in answer.content.decode()

    def test_changes_and_removes(self, client: Client, project: Project) -> None:
        make_member(project, make_user("bob"))
        client.post("/p/acme/settings/members/bob/role/", {"role": "curator"})
        assert project.members.get(user__username="bob").role == Role.CURATOR
        client.post("/p/acme/settings/members/bob/remove/")
        assert project.members.count() == 1

    def test_the_last_admin_cannot_be_removed(self, client: Client, project: Project) -> None:
        answer = client.post("/p/acme/settings/members/ada/remove/", follow=True)
        assert "last admin" in answer.content.decode()
        assert project.members.count() == 1

    def test_viewers_see_and_do_not_change(self, client: Client, project: Project) -> None:
        client.force_login(make_member(project, make_user("bob"), Role.VIEWER))
        page = client.get("/p/acme/settings/members/").content.decode()
        assert "ada" in page and "<select" not in page.split("<main")[1]
        assert client.post("/p/acme/settings/members/bob/role/", {"role": "admin"}).status_code == 403
        assert client.get("/p/acme/settings/members/bob/role/").status_code == 405


class TestAudit:
    def test_pages_by_keyset_and_filters(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        bob = make_user("bob")
        for number in range(3):
            AuditEntry.record(actor=bob, project=project, action="thing.do", subject=str(number))
        AuditEntry.record(actor=bob, project=make_project("foreign"), action="thing.do", subject="foreign")
        first = client.get("/api/v1/projects/acme/audit?action=thing.do&actor=bob&limit=2", headers=headers).json()
        assert [row["subject"] for row in first["data"]] == ["2", "1"]
        path = f"/api/v1/projects/acme/audit?action=thing.do,other&limit=2&cursor={first['next_cursor']}"
        assert [row["subject"] for row in client.get(path, headers=headers).json()["data"]] == ["0"]

    def test_the_page_filters_and_pages(self, client: Client, project: Project) -> None:
        for number in range(120):
            AuditEntry.record(actor=None, project=project, action="thing.do", subject=f"nr-{number}")
        page = client.get("/p/acme/settings/audit/?action=thing.do")
        assert len(page.context["rows"]) == 100
        assert len(client.get(page.context["older_url"]).context["rows"]) == 20
        assert not client.get("/p/acme/settings/audit/?actor=nobody").context["rows"]

    def test_entries_are_never_altered(self, project: Project) -> None:
        AuditEntry.record(actor=None, project=project, action="thing.do")
        entry = AuditEntry.objects.get()
        entry.action = "thing.undo"
        with pytest.raises(Problem, match="append-only"):
            entry.save()


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
    assert set(User.objects.values_list("username", flat=True)) == {"ada", "taken"}


def test_the_page_where_members_are_added_says_how_accounts_are_made(client: Client) -> None:
    user = make_user()
    client.force_login(user)
    page = client.get(reverse("member-list", args=[make_project(user=user).slug])).content.decode()
    assert "manage.py account NAME" in page
