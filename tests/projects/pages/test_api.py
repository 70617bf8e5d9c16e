"""`/projects`: making, reading and changing projects by REST."""

from typing import Any

import orjson
import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from pytest_django import Settings

from curation.projects.models import AuditEntry, Member, Project, Role
from tests.factories import make_bearer, make_endpoint, make_project, make_user

pytestmark = pytest.mark.django_db
JSON = "application/json"


def create(client: Client, headers: dict[str, str], **body: str) -> Any:
    given = {"slug": "shell", "name": "Shell", **body}
    return client.post("/api/v1/projects", given, content_type=JSON, headers=headers)


class TestCreate:
    @pytest.fixture
    def staff(self) -> dict[str, str]:
        return make_bearer(make_user("ada", is_staff=True))

    def test_the_creator_becomes_admin_and_the_log_says_so(self, client: Client, staff: dict[str, str]) -> None:
        answer = create(client, staff)
        assert answer.status_code == 201
        assert answer["Location"] == "/api/v1/projects/shell"
        assert answer.json()["settings"]["thresholds"] == {"final": 80.0, "refined": 66.0}
        assert Member.objects.get(project__slug="shell").role == Role.ADMIN
        assert AuditEntry.objects.get(action="project.create").actor == User.objects.get()

    def test_a_token_without_admin_is_refused(self, client: Client) -> None:
        answer = create(client, make_bearer(make_user(is_staff=True), "read", "run"))
        assert answer.status_code == 403
        assert not Project.objects.exists()

    def test_a_taken_slug_is_a_conflict(self, client: Client, staff: dict[str, str]) -> None:
        make_project("shell")
        answer = create(client, staff)
        assert (answer.status_code, answer.json()["code"]) == (409, "slug_taken")

    @pytest.mark.parametrize(
        ("body", "path"),
        [
            *(({"slug": slug}, "slug") for slug in ("", "Shell", "-a", "a b", "ä", "x" * 61, "a\n")),
            ({"colour": "red"}, "colour"),
        ],
    )
    def test_what_is_wrong_is_named(
        self, client: Client, staff: dict[str, str], body: dict[str, str], path: str
    ) -> None:
        answer = create(client, staff, **body)
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, path)

    def test_making_projects_is_a_right(self, client: Client, settings: Settings) -> None:
        """The admin of a project chooses hosts that the server's keys are sent to."""

        def status(user: User, slug: str) -> int:
            return int(create(client, make_bearer(user), slug=slug).status_code)

        anyone, grouped = make_user(), make_user()
        grouped.groups.add(Group.objects.create(name="project-creators"))
        assert status(anyone, "a") == 403
        assert status(grouped, "b") == 201
        assert status(make_user(is_superuser=True), "c") == 201
        settings.PROJECT_CREATORS = ("group:leads",)
        assert status(make_user(is_staff=True), "d") == 403
        settings.PROJECT_CREATORS = ("everyone",)
        assert status(anyone, "e") == 201

    def test_the_pages_offer_it_only_with_the_right(self, client: Client) -> None:
        client.force_login(make_user())
        assert "/projects/new/" not in client.get("/").content.decode()
        assert client.get("/projects/new/").status_code == 403
        client.force_login(make_user(is_staff=True))
        assert "/projects/new/" in client.get("/").content.decode()
        assert client.get("/projects/new/").status_code == 200


class TestList:
    def test_shows_only_the_callers_projects_page_by_page(self, client: Client) -> None:
        ada = make_user()
        for slug in ("c", "a", "b"):
            make_project(slug, user=ada)
        make_project("foreign")
        headers = make_bearer(ada, "read")
        first = client.get("/api/v1/projects?limit=2&count=true", headers=headers).json()
        assert [row["slug"] for row in first["data"]] == ["a", "b"]
        assert first["total"] == 3
        second = client.get(f"/api/v1/projects?limit=2&cursor={first['next_cursor']}", headers=headers).json()
        assert [row["slug"] for row in second["data"]] == ["c"]
        assert second["next_cursor"] is None
        assert "total" not in second

    def test_an_unknown_parameter_is_refused(self, client: Client) -> None:
        answer = client.get("/api/v1/projects?colour=red", headers=make_bearer(make_user()))
        assert answer.status_code == 400
        assert answer.json()["code"] == "unknown_parameter"
        assert answer.json()["errors"] == [{"path": "colour", "message": "unknown parameter"}]


class TestRead:
    def test_carries_the_version_as_etag(self, client: Client) -> None:
        ada = make_user()
        make_project("shell", user=ada, role=Role.VIEWER, version=4)
        answer = client.get("/api/v1/projects/shell", headers=make_bearer(ada, "read"))
        assert answer["ETag"].startswith('"4-')
        assert answer.json()["version"] == 4


class TestChange:
    @pytest.fixture
    def headers(self) -> dict[str, str]:
        ada = make_user("ada")
        make_project("shell", user=ada)
        return make_bearer(ada)

    def change(self, client: Client, headers: dict[str, str], **body: object) -> tuple[int, dict[str, object]]:
        answer = client.patch("/api/v1/projects/shell", orjson.dumps(body), content_type=JSON, headers=headers)
        return answer.status_code, answer.json()

    def test_settings_are_merged_deeply_and_logged(self, client: Client, headers: dict[str, str]) -> None:
        for name in ("a", "b"):
            make_endpoint(Project.objects.get(), name)
        self.change(client, headers, settings={"thresholds": {"final": 90}, "panel": {"judges": ["a", "b"]}})
        status, answer = self.change(client, headers, settings={"thresholds": {"refined": 70}})
        assert status == 200
        assert answer["version"] == 3
        settings = Project.objects.get().settings
        assert (settings.thresholds.final, settings.thresholds.refined) == (90, 70)
        assert settings.panel.judges == ["a", "b"]
        entry = AuditEntry.objects.filter(action="project.update").latest("id")
        assert entry.data["settings"] == {"thresholds.refined": [66.0, 70.0]}

    def test_null_takes_a_setting_back_to_its_default(self, client: Client, headers: dict[str, str]) -> None:
        self.change(client, headers, settings={"thresholds": {"final": 90}})
        self.change(client, headers, settings={"thresholds": {"final": None}})
        assert Project.objects.get().settings.thresholds.final == 80

    @pytest.mark.parametrize(
        ("settings", "path"),
        [
            ({"thresholds": {"final": 101}}, "settings.thresholds.final"),
            ({"thresholds": {"finale": 90}}, "settings.thresholds.finale"),
            ({"thresholds": {"finale": None}}, "settings.thresholds.finale"),
            ({"treshold": {}}, "settings.treshold"),
            ({"thresholds": {"final": 10}}, "settings.thresholds"),
            ({"panel": {"weights": {"beauty": 1}}}, "settings.panel.weights"),
            ({"thresholds": 3}, "settings.thresholds"),
        ],
    )
    def test_what_is_wrong_is_named_and_nothing_is_written(
        self, client: Client, headers: dict[str, str], settings: dict[str, object], path: str
    ) -> None:
        status, answer = self.change(client, headers, settings=settings)
        assert status == 422
        assert answer["errors"][0]["path"] == path  # type: ignore[index]
        assert Project.objects.get().version == 1

    def test_the_current_version_is_accepted(self, client: Client, headers: dict[str, str]) -> None:
        seen = {**headers, "If-Match": '"1"'}
        answer = client.patch("/api/v1/projects/shell", {"name": "Other"}, content_type=JSON, headers=seen)
        assert (answer.status_code, answer["ETag"]) == (200, '"2"')

    def test_no_change_keeps_the_version_and_the_log(self, client: Client, headers: dict[str, str]) -> None:
        _, answer = self.change(client, headers, name="shell", settings={"thresholds": {"final": 80}})
        assert answer["version"] == 1
        assert not AuditEntry.objects.filter(action="project.update").exists()
