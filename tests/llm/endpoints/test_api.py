"""`/projects/{slug}/models`: the right to edit endpoints, refusals, unchanged fields."""

import json

import pytest
from django.test import Client
from pytest_django import Settings

from curation.llm.models import Endpoint
from curation.projects.models import AuditEntry, Project
from curation.runs.models import Call, Item
from tests.factories import make_endpoint, make_project, make_run

pytestmark = pytest.mark.django_db
JSON = "application/json"
PATH = "/api/v1/projects/acme/models"
BODY = {"name": "judge-a", "model": "openai/qwen", "api_base": "http://127.0.0.1:8001/v1", "max_concurrency": 64}


class TestCreate:
    def test_makes_the_row_and_the_entry(self, client: Client, headers: dict[str, str]) -> None:
        body = {**BODY, "price_in": "0.15", "rpm": 600, "params": {"temperature": 0.2}, "family": "qwen"}
        answer = client.post(PATH, body, content_type=JSON, headers=headers)
        assert answer.status_code == 201
        shown = answer.json()
        assert (shown["price_in"], shown["price_out"], shown["scripted"]) == ("0.15", None, False)
        assert Endpoint.objects.get().params == {"temperature": 0.2}
        assert AuditEntry.objects.get(action="model.create").subject == "judge-a"

    def test_a_name_with_slashes_has_every_address(
        self, client: Client, project: Project, headers: dict[str, str]
    ) -> None:
        name = "Qwen/Qwen3-8B"
        answer = client.post(PATH, {**BODY, "name": name}, content_type=JSON, headers=headers)
        assert (answer.status_code, answer["Location"]) == (201, f"{PATH}/{name}")
        for address in (f"{PATH}/{name}", f"{PATH}/Qwen%2FQwen3-8B", f"{PATH}/{name}/usage"):
            assert client.get(address, headers=headers).status_code == 200
        client.force_login(project.members.get().user)
        pages = [f"/p/acme/models/{name}/{page}/" for page in ("edit", "usage")]
        assert [client.get(page).status_code for page in pages] == [200, 200]
        assert f'href="{pages[0]}"' in client.get("/p/acme/models/").content.decode()

    def test_a_taken_name_is_a_conflict(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        make_endpoint(project, "judge-a")
        answer = client.post(PATH, BODY, content_type=JSON, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")

    @pytest.mark.parametrize(
        ("change", "path"),
        [
            ({"params": {"stream": "often"}}, "params.stream"),
            ({"params": {"takes_tools": 2}}, "params.takes_tools"),
            ({"name": "a b"}, "name"),
            ({"name": ""}, "name"),
            ({"name": "a//b"}, "name"),
            ({"name": "a/../b"}, "name"),
            ({"name": "a/usage"}, "name"),
            ({"model": "two words"}, "model"),
            ({"model": "gpt-4o"}, "model"),
            ({"model": "scripted/nobody"}, "model"),
            ({"api_base": "ftp://host/v1"}, "api_base"),
            ({"api_base": "http://host/v1?key=1"}, "api_base"),
            ({"api_base": "http://host:port/v1"}, "api_base"),
            ({"api_key_env": "my key"}, "api_key_env"),
            ({"api_key_env": "SECRET_KEY"}, "api_key_env"),
            ({"api_key_env": "DATABASE_URL"}, "api_key_env"),
            ({"max_concurrency": 0}, "max_concurrency"),
            ({"rpm": 0}, "rpm"),
            ({"price_in": "-1"}, "price_in"),
            ({"price_in": "0.0000001"}, "price_in"),
            ({"price_in": "NaN"}, "price_in"),
            ({"params": {"temprature": 1}}, "params.temprature"),
            ({"params": {"temperature": "hot"}}, "params.temperature"),
            ({"params": []}, "params"),
            ({"colour": "red"}, "colour"),
        ],
    )
    def test_what_is_wrong_is_named_and_nothing_is_written(
        self, client: Client, headers: dict[str, str], change: dict[str, object], path: str
    ) -> None:
        answer = client.post(PATH, {**BODY, **change}, content_type=JSON, headers=headers)
        assert answer.status_code == 422
        assert answer["Content-Type"] == "application/problem+json"
        assert path in [error["path"] for error in answer.json()["errors"]]
        assert not Endpoint.objects.exists()

    @pytest.mark.parametrize(
        "change",
        [
            {"api_key_env": "sk-proj-abcdefghijklmnop1234"},
            {"api_key_env": "sk-short"},
            {"api_key_env": "AKIAIOSFODNN7EXAMPLE"},
            {"params": {"extra_body": {"api_key": "sk-proj-abcdefghijklmnop1234"}}},
            {"params": {"extra_body": {"note": "sk-proj-abcdefghijklmnop1234"}}},
            {"params": {"extra_body": {"sk-proj-abcdefghijklmnop1234": 1}}},
            {"params": {"extra_headers": {"Authorization": "Bearer abcdefghijkl"}}},
            {"api_base": "http://user:sk-proj-abcdefghijklmnop1234@host/v1"},
        ],
    )
    def test_a_pasted_key_is_recognised_and_never_repeated(
        self, client: Client, headers: dict[str, str], change: dict[str, object], caplog: pytest.LogCaptureFixture
    ) -> None:
        answer = client.post(PATH, {**BODY, **change}, content_type=JSON, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "secret")
        said = answer.content.decode() + caplog.text + json.dumps(list(AuditEntry.objects.values_list("data")))
        for secret in ("sk-proj-abc", "sk-short", "AKIAIOS", "Bearer abc"):
            assert secret not in said
        assert not Endpoint.objects.exists()

    def test_a_private_host_needs_the_operators_word(
        self, client: Client, headers: dict[str, str], settings: Settings
    ) -> None:
        settings.ALLOW_PRIVATE_MODEL_HOSTS = False
        answer = client.post(PATH, BODY, content_type=JSON, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (422, "private_address")


class TestChange:
    def test_changes_only_what_is_given(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        make_endpoint(project, "judge-a", price_in="1.5", rpm=60)
        answer = client.patch(f"{PATH}/judge-a", {"rpm": None}, content_type=JSON, headers=headers)
        assert answer.status_code == 200
        row = Endpoint.objects.get()
        assert (row.rpm, str(row.price_in), row.version) == (None, "1.500000", 2)
        assert AuditEntry.objects.get(action="model.update").data == {"rpm": [60, None]}

    def test_another_projects_endpoint_is_not_found(self, client: Client, headers: dict[str, str]) -> None:
        make_endpoint(make_project("foreign"), "judge-a")
        assert client.patch(f"{PATH}/judge-a", {}, content_type=JSON, headers=headers).status_code == 404


class TestDelete:
    def test_keeps_the_calls_that_were_made(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        endpoint = make_endpoint(project, "judge-a")
        run = make_run(project)
        item = Item.objects.create(run=run, stage="judge", key="1")
        Call.objects.create(
            project=project, run=run, item=item, endpoint=endpoint, endpoint_name="judge-a", content_hash="0" * 64
        )
        assert client.delete(f"{PATH}/judge-a", headers=headers).status_code == 204
        assert Call.objects.get().endpoint_name == "judge-a"
        assert Call.objects.get().endpoint is None
        assert AuditEntry.objects.filter(action="model.delete").exists()


class TestList:
    def test_pages_by_name(self, client: Client, project: Project, headers: dict[str, str]) -> None:
        for name in ("b", "a", "c"):
            make_endpoint(project, name)
        make_endpoint(make_project("foreign"), "d")
        first = client.get(f"{PATH}?limit=2&count=true", headers=headers).json()
        assert ([row["name"] for row in first["data"]], first["total"]) == (["a", "b"], 3)
        rest = client.get(f"{PATH}?cursor={first['next_cursor']}", headers=headers).json()
        assert [row["name"] for row in rest["data"]] == ["c"]

    def test_an_unknown_parameter_is_refused(self, client: Client, headers: dict[str, str]) -> None:
        assert client.get(f"{PATH}?colour=red", headers=headers).status_code == 400
