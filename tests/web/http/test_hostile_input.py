"""Input that once ended in an internal error: each kind is refused in words, on pages and by REST."""

import base64
import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import get_resolver

from curation.duels.models import Exclusion
from curation.llm.models import Endpoint
from curation.projects.models import Project
from curation.web.lists.keyset import encode_cursor
from curation.web.problems import Problem
from curation.web.text.storable import DEEPEST, read_json
from tests.factories import make_bearer, make_endpoint, make_member, make_project, make_run
from tests.sampled import one_of

pytestmark = pytest.mark.django_db
JSON = "application/json"
SURROGATE, NUL = "\\ud800", "\\u0000"


@pytest.fixture
def page(client: Client, ada: User, project: Project) -> Iterator[Client]:
    client.raise_request_exception = False
    client.force_login(ada)
    yield client


@pytest.fixture
def rest(client: Client, ada: User, project: Project) -> Iterator[Client]:
    client.raise_request_exception = False
    client.defaults["HTTP_AUTHORIZATION"] = make_bearer(ada)["Authorization"]
    yield client


class TestHost:
    @pytest.mark.parametrize("path", ["/", "/login/", "/p/acme/samples/", "/nowhere/", "/api/v1/projects"])
    @pytest.mark.parametrize("host", ["evil.example.org", "a b", "[::1", ""])
    def test_a_foreign_host_is_a_bad_request(self, page: Client, path: str, host: str) -> None:
        answer = page.get(path, headers={"Host": host})
        assert answer.status_code == 400
        assert "error" not in answer.content.decode().lower() or path.startswith("/api/")


class TestMultipart:
    @pytest.mark.parametrize("path", ["/api/v1/projects/acme/imports", "/api/v1/projects/acme/imports/preview"])
    @pytest.mark.parametrize(
        "content_type", ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=é"]
    )
    def test_a_form_without_a_boundary_is_a_bad_request(self, rest: Client, path: str, content_type: str) -> None:
        answer = rest.generic("POST", path, b"--x\r\n", content_type)
        assert answer.status_code == 400, answer.content
        assert answer.json()["detail"]

    @pytest.mark.parametrize("path", ["/p/acme/imports/new/", "/login/", "/projects/new/"])
    def test_a_page_refuses_it_too(self, page: Client, path: str) -> None:
        client = Client(enforce_csrf_checks=True, raise_request_exception=False)
        client.cookies = page.cookies
        for one in (client, page):
            assert one.generic("POST", path, b"--x\r\n", "multipart/form-data").status_code < 500

    @pytest.mark.parametrize("name", ["x" * 3000 + ".jsonl", "turns." + "x" * 3000, "turns." + "x" * 500, "." * 300])
    @pytest.mark.parametrize("size", [10, 3_000_000])
    def test_any_file_name_is_taken_or_refused(self, rest: Client, name: str, size: int) -> None:
        content = b'{"messages": []}\n' * (size // 16 + 1)
        parts = f'--b\r\nContent-Disposition: form-data; name="kind"\r\n\r\nturns\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: text/plain\r\n\r\n'  # noqa: E501
        answer = rest.generic(
            "POST",
            "/api/v1/projects/acme/imports",
            parts.encode() + content + b"\r\n--b--\r\n",
            "multipart/form-data; boundary=b",
        )
        assert answer.status_code in (202, 400, 422), answer.content

    def test_a_nul_in_a_field_is_named(self, rest: Client) -> None:
        answer = rest.post("/api/v1/projects/acme/imports", {"kind": "turns", "source": "https://x/\0"})
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "source")


UNSTORABLE = {
    "NUL": f'"a{NUL}b"',
    "half a surrogate pair": f'"{SURROGATE}"',
    "10**30": str(10**30),
    "5,000 digits": "9" * 5000,
    "below every integer": str(-(10**30)),
    "infinity": "1e999",
    "NaN": "NaN",
    "deep lists": "[" * 500 + "]" * 500,
    "very deep lists": "[" * 100_000 + "]" * 100_000,
    "deep objects": '{"a":' * 500 + "1" + "}" * 500,
    "a NUL in a key": f'{{"{NUL}": 1}}',
    "a surrogate in a key": f'{{"{SURROGATE}": 1}}',
}


BODIES = {
    "/projects/acme/models": '{"name": "m", "model": "openai/x", "params": {"extra_body": {"x": @}}}',
    "/projects/acme/models#max_tokens": '{"name": "m", "model": "openai/x", "params": {"max_tokens": @}}',
    "/projects/acme/webhooks": '{"url": "https://hooks.example.org/", "events": [@]}',
    "/projects/acme/webhooks#url": '{"url": @, "events": ["run.finished"]}',
    "/projects/acme/exclusions": '{"exclusions": [{"instance_id": "a", "reason": @}]}',
    "/projects/acme/exclusions#id": '{"exclusions": [{"instance_id": @, "reason": "x"}]}',
    "/projects/acme/runs": '{"kind": "king", "params": {"model": @}}',
    "/projects/acme/runs#filter": '{"kind": "king", "params": {"model": "m", "filter": {"source": @}}}',
    "/projects/acme/imports": '{"kind": "turns", "source": @}',
    "/projects/acme/imports#options": '{"kind": "turns", "source": "https://x.example/", "options": {"count": @}}',
    "/projects/acme/exports": '{"recipe": {"formats": ["dpo"], "seed": @}}',
    "/projects/acme/scenarios": '{"name": @}',
    "/projects/acme/views": '{"name": @, "query": ""}',
    "/projects/acme/members": '{"username": @}',
    "/projects": '{"slug": "b", "name": @}',
    "/tokens": '{"name": @}',
    "/tokens#days": '{"name": "x", "expires_in_days": @}',
    "/samples/bulk": '{"ids": [@], "action": "approve"}',
}


@pytest.mark.parametrize("path", BODIES)
def test_a_body_that_cannot_be_stored_is_refused_with_words(rest: Client, path: str) -> None:
    for name, value in UNSTORABLE.items():
        body = BODIES[path].replace("@", value)
        answer = rest.generic("POST", f"/api/v1{path.split('#')[0]}", body.encode(), JSON)
        assert answer.status_code in (400, 422), (name, answer.content)
        assert answer["Content-Type"] == "application/problem+json", name
        assert answer.json()["detail"], name
    assert not Exclusion.objects.exists() and not Endpoint.objects.exists()


def test_what_is_no_object_is_called_that(rest: Client) -> None:
    inner = [
        ("/projects/acme/exports", '{"recipe": {"formats": ["dpo"], "caps": []}}'),
        ("/projects/acme/runs", '{"kind": "king", "params": []}'),
    ]
    whole = {path.split("#")[0] for path in BODIES} - {"/projects/acme/imports"}  # where a file can be sent too
    for path, body in [*inner, *product(sorted(whole), ("[]", '"x"', "null"))]:
        answer = rest.generic("POST", f"/api/v1{path}", body.encode(), JSON)
        assert answer.status_code == 422 and "must be a JSON object" in answer.json()["detail"], (path, answer.content)


@pytest.mark.parametrize("value", UNSTORABLE)
def test_settings_and_exclusions_refuse_them_too(rest: Client, value: str) -> None:
    for method, path, body in [
        ("PATCH", "/api/v1/projects/acme", '{"settings": {"thresholds": {"final": @}}}'),
        ("DELETE", "/api/v1/projects/acme/exclusions", '{"instance_ids": [@]}'),
    ]:
        answer = rest.generic(method, path, body.replace("@", UNSTORABLE[value]).encode(), JSON)
        assert answer.status_code in (400, 422), answer.content


LISTS = ["samples", "runs", "prompts", "duels", "exports", "trajectories", "scenarios", "splits", "evaluations"]


QUERY = ["limit", "cursor", "sort", "text", "source", "score_min", "created_after", "run", "id", "after"]


PARAMETERS = ["\0", "%00", "9" * 30, "-" + "9" * 30, "1e999", "nan", "\ud7ff\ufffe", "x" * 5000, "[" * 500]


@pytest.mark.parametrize("value", one_of(3, PARAMETERS))
def test_query_parameters_are_never_an_internal_error(rest: Client, value: str) -> None:
    for path in LISTS:
        for name in QUERY:
            answer = rest.get(f"/api/v1/projects/acme/{path}", {name: value})
            assert answer.status_code < 500, (path, name, answer.content)


@pytest.mark.parametrize("value", [10**18 * 9, "x", "\0", 1.5, True, "2020-99-99"])
@pytest.mark.parametrize("pk", [1, 2**63, -(2**64)])
@pytest.mark.parametrize("sort", ["-id", "-score"])
def test_a_made_up_cursor_is_refused_or_empty(rest: Client, value: Any, pk: int, sort: str) -> None:
    cursor = json.dumps([sort, value, pk])
    given = base64.urlsafe_b64encode(cursor.encode()).decode().rstrip("=")
    answer = rest.get("/api/v1/projects/acme/samples", {"sort": sort, "cursor": given})
    assert answer.status_code in (200, 400, 422), answer.content


SENT = one_of(6, ["a\0b", "9" * 30, "[" * 2000, "\ufffe", f'{{"a": "{NUL}"}}', "1e999"])


def pages_without_ids() -> list[str]:
    routes = {value[0][0][0] for _, values in get_resolver().reverse_dict.lists() for value in values}
    paths = {"/" + route.replace("%(slug)s", "acme") for route in routes}
    return sorted(path for path in paths if "%(" not in path and not path.startswith(("/api/", "/logout")))


@pytest.mark.parametrize("value", SENT)
def test_no_page_fails_on_its_form(page: Client, project: Project, value: str) -> None:
    make_endpoint(project, "judge-a")
    names = [
        "name", "model", "slug", "url", "events", "params", "budget", "filter", "query", "count", "source", "file",
        "upload", "kind", "instance_ids", "reason", "instance_id", "text", "version", "username", "role", "scopes",
        "ids", "action", "split", "models", "recipe", "seed", "judges", "guidelines", "max_concurrency", "rpm",
        "price_in", "api_base", "all", "max_tokens", "n", "to", "environment", "reset", "until", "lease", "then",
    ]  # fmt: skip
    everywhere, of_an_import = dict.fromkeys(names, value), {"kind": "turns", "source": value, "file": value}
    for path in pages_without_ids():
        for sent in (everywhere, of_an_import) if "/imports/" in path else (everywhere,):
            assert page.post(path, sent).status_code < 500, path
            assert page.get(path, sent).status_code < 500, path


def test_the_limit_of_nesting_is_exact() -> None:
    assert read_json("[" * DEEPEST + "]" * DEEPEST)
    with pytest.raises(Problem, match="levels of nesting"):
        read_json("[" * (DEEPEST + 2) + "]" * (DEEPEST + 2))


def test_a_whole_surrogate_pair_is_text() -> None:
    assert read_json('"\\ud83d\\ude00"') == "😀"
    assert encode_cursor("-id", 1, 1)


@pytest.mark.parametrize("path", ["runs/", "duels/", "prompts/", "samples/", "trajectories/", "scenarios/"])
def test_the_list_is_shown_without_it_and_names_it(client: Client, path: str) -> None:
    project = make_project("acme")
    client.force_login(make_member(project))
    make_run(project)
    answer = client.get(f"/p/acme/{path}?colour=red&sort=id", follow=True)
    assert answer.status_code == 200 and answer.redirect_chain[0][0] == f"/p/acme/{path}?sort=id"
    assert "The list is shown without colour." in answer.content.decode()


def test_rest_refuses_it_still(client: Client) -> None:
    client.force_login(make_member(make_project("acme")))
    assert client.get("/api/v1/projects/acme/runs?colour=red").status_code == 400
