"""Pages of projects: the list, a new one, general settings, rules, the TOML file."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from curation.projects.models import AuditEntry, Member, Project, Role
from curation.projects.pages.forms import SettingsForm
from tests.factories import make_endpoint, make_member, make_project, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(client: Client) -> Project:
    """A project whose admin is signed in."""
    ada = make_user("ada")
    client.force_login(ada)
    return make_project("shell", user=ada, name="Shell agents")


def sign_in(client: Client, project: Project, role: str) -> None:
    client.force_login(make_member(project, role=role))


class TestHome:
    def test_one_project_leads_to_its_overview(self, client: Client, project: Project) -> None:
        assert client.get("/")["Location"] == reverse("overview", args=["shell"])

    def test_several_are_listed_without_foreign_ones(self, client: Client, project: Project) -> None:
        make_project("second", user=project.members.get().user, name="Second")
        make_project("foreign", name="Foreign")
        page = client.get("/").content.decode()
        assert "Shell agents" in page and "Second" in page
        assert "Foreign" not in page

    def test_an_anonymous_visitor_is_sent_to_sign_in(self, client: Client) -> None:
        answer = client.get("/")
        assert (answer.status_code, answer["Location"]) == (302, "/login/?next=/")


class TestNewProject:
    def test_its_creator_becomes_admin(self, client: Client) -> None:
        client.force_login(make_user("ada", is_staff=True))
        answer = client.post("/projects/new/", {"name": "Shell", "slug": "shell"})
        assert answer["Location"] == reverse("overview", args=["shell"])
        assert Member.objects.get(project__slug="shell").role == Role.ADMIN

    def test_the_slug_is_made_of_the_name(self, client: Client) -> None:
        client.force_login(make_user("grace", is_superuser=True))
        for slug in ("garden-answers", "garden-answers-2"):
            assert client.post("/projects/new/", {"name": "Garden  Answers!", "slug": ""})["Location"] == f"/p/{slug}/"

    def test_a_taken_slug_is_shown_under_its_field_and_the_input_is_kept(
        self, client: Client, project: Project
    ) -> None:
        client.force_login(make_user(is_staff=True))
        answer = client.post("/projects/new/", {"name": "My own", "slug": "shell"})
        assert answer.status_code == 409
        assert answer.context["form"].errors["slug"] == ["This is taken."]
        assert "My own" in answer.content.decode()


class TestGeneral:
    def test_saves_name_and_guidelines(self, client: Client, project: Project) -> None:
        body = {"name": "Shell 2", "guidelines": "# Approve\r\nwhen right", "version": 1}
        assert client.post("/p/shell/settings/", body).status_code == 302
        project.refresh_from_db()
        assert (project.name, project.guidelines, project.version) == ("Shell 2", "# Approve\nwhen right", 2)
        assert AuditEntry.objects.filter(action="project.update", project=project).count() == 1

    def test_a_stale_form_overwrites_nothing_and_keeps_what_was_typed(self, client: Client, project: Project) -> None:
        Project.objects.update(version=2, name="By Bob")
        answer = client.post("/p/shell/settings/", {"name": "Mine", "guidelines": "typed", "version": 1})
        assert answer.status_code == 412
        assert "typed" in answer.content.decode()
        assert Project.objects.get().name == "By Bob"

    def test_guidelines_cannot_bring_script_or_images(self, client: Client, project: Project) -> None:
        text = (
            "**good** <script>alert(1)</script> [x](javascript:alert(1)) ![i](https://evil.example/i.png) <b onclick=x>"
        )
        Project.objects.update(guidelines=text)
        sign_in(client, project, Role.VIEWER)
        page = client.get("/p/shell/settings/").content.decode()
        assert "<strong>good</strong>" in page
        for evil in ("<script>alert", 'href="javascript', 'evil.example/i.png"', "<b onclick"):
            assert evil not in page


class TestRules:
    def body(self, project: Project, **changes: object) -> dict[str, object]:
        form = SettingsForm(project, initial={"version": project.version})
        shown = {name: form[name].value() for name in form.fields}
        return {name: value for name, value in {**shown, **changes}.items() if value is not None and value is not False}

    def test_every_setting_has_a_field(self, project: Project) -> None:
        form = SettingsForm(project)
        settings = project.settings.model_dump()
        assert set(form.fields) == {"version"} | {f"{s}__{key}" for s, values in settings.items() for key in values}

    def test_saving_what_is_shown_changes_nothing(self, client: Client, project: Project) -> None:
        assert client.post("/p/shell/settings/rules/", self.body(project)).status_code == 302
        project.refresh_from_db()
        assert (project.version, project.settings_json) == (1, {})

    def test_saves_only_what_is_different(self, client: Client, project: Project) -> None:
        for name in ("judge-a", "judge-b"):
            make_endpoint(project, name)
        body = self.body(
            project,
            thresholds__final=85,
            panel__judges=["judge-a", "judge-b"],
            panel__swap=False,
            panel__weights="correctness = 2\r\nprotocol=0.5",
        )
        assert client.post("/p/shell/settings/rules/", body).status_code == 302
        project.refresh_from_db()
        assert project.settings_json == {
            "thresholds": {"final": 85.0},
            "panel": {
                "judges": ["judge-a", "judge-b"],
                "swap": False,
                "weights": {"correctness": 2.0, "protocol": 0.5},
            },
        }

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("thresholds__final", "101"),
            ("thresholds__final", "much"),
            ("thresholds__final", "50"),  # below the edge of refined: shown at the first of the two
            ("panel__weights", "beauty = 1"),
            ("panel__weights", "correctness"),
            ("panel__judges", ["nobody"]),
            ("review__lease_seconds", "1"),
        ],
    )
    def test_an_error_is_shown_under_its_field(self, client: Client, project: Project, field: str, value: str) -> None:
        answer = client.post("/p/shell/settings/rules/", self.body(project, **{field: value}))
        assert answer.status_code == 422
        assert list(answer.context["form"].errors) == [field]
        assert Project.objects.get().version == 1


TOML = '[judge]\nmodels = ["a", "b"]\nmin_judges = 1\n\n[duel]\nfinal = 90\nmax_leak = 0.2\n'


class TestToml:
    @pytest.fixture(autouse=True)
    def judges(self, project: Project) -> None:
        for name in ("a", "b"):
            make_endpoint(project, name)

    def test_shows_what_would_change_before_anything_is_saved(self, client: Client, project: Project) -> None:
        answer = client.post("/p/shell/settings/rules/toml/", {"toml": TOML})
        changes = {c.path: (c.before, c.after) for c in answer.context["changes"]}
        assert changes == {
            "thresholds.final": (80.0, 90.0),
            "panel.judges": ([], ["a", "b"]),
            "panel.min_judges": (None, 1),
            "limits.max_leak": (0.1, 0.2),
        }
        assert Project.objects.get().version == 1

    def test_tables_of_other_programs_are_listed(self, client: Client, project: Project) -> None:
        page = client.post("/p/shell/settings/rules/toml/", {"toml": f"{TOML}\n[train]\nlr = 1.0\n"}).content.decode()
        assert "were not read" in page and "[train]" in page and "thresholds.final" in page

    def test_an_uploaded_file_is_saved_after_the_comparison(self, client: Client, project: Project) -> None:
        file = SimpleUploadedFile("duel.toml", TOML.encode())
        shown = client.post("/p/shell/settings/rules/toml/", {"file": file})
        body = {"toml": shown.context["toml"], "version": shown.context["version"], "save": "1"}
        assert client.post("/p/shell/settings/rules/toml/", body).status_code == 302
        assert Project.objects.get().settings.thresholds.final == 90

    def test_what_was_compared_must_still_hold(self, client: Client, project: Project) -> None:
        Project.objects.update(version=5)
        body = {"toml": TOML, "version": 1, "save": "1"}
        assert client.post("/p/shell/settings/rules/toml/", body).status_code == 412
        assert Project.objects.get().settings.thresholds.final == 80

    @pytest.mark.parametrize("text", ["", "[judge", "[duel]\nfinale = 3", "[other]\nx = 1", "[duel]\nfinal = 10"])
    def test_a_bad_file_is_refused_in_words_and_kept(self, client: Client, project: Project, text: str) -> None:
        answer = client.post("/p/shell/settings/rules/toml/", {"toml": text})
        assert answer.status_code == 422
        assert answer.context["form"].errors
        assert answer.context["form"]["toml"].value() == text
