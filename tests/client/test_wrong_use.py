"""Common first mistakes: the address, the token, one id in place of a list. Nothing is sent in vain."""

import asyncio
import http.server
import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import winnow_client as client
from tests.contract import example, operations
from tests.serving import serving, url_of
from winnow_client import command
from winnow_client.rows import query

Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def site_that_answers(*answers: Answer) -> Iterator[tuple[str, list[str]]]:
    """A server with these answers, the last one again and again; the list has the paths that were asked for."""
    waiting, asked = list(answers), []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, body = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """The test looks at `asked`."""

    with serving(Handler) as server:
        yield url_of(server), asked


def answer(body: object, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return 200, {"Content-Type": "application/json", **named}, json.dumps(body).encode()


def shown(path: str, method: str = "GET") -> dict[str, Any]:
    """The example of an answer in the OpenAPI document."""
    body: dict[str, Any] = example(operations(method, path)[0])[1]
    return body


@pytest.mark.parametrize(
    ("url", "token", "said"),
    [
        ("127.0.0.1:8000", "wn_x", "must begin with http"),
        ("http://127.0.0.1:8000", "wn_x\r", "a character that no token has"),
        ("http://127.0.0.1:8000", "wn_ü", "a character that no token has"),
    ],
)
def test_an_address_or_a_token_that_cannot_work_is_refused_at_once(url: str, token: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        client.Winnow(url, token)


def test_a_redirect_names_the_address_to_give() -> None:
    moved = (301, {"Location": "https://winnow.example.org/api/v1/projects/demo"}, b"")
    with site_that_answers(moved) as (url, _), pytest.raises(client.ProblemError) as refused:
        client.Winnow(url, "wn_x").project("demo")
    assert "redirects to https://winnow.example.org/api/v1/projects/demo" in str(refused.value)


def test_a_page_of_html_is_named_not_quoted() -> None:
    page = (404, {"Content-Type": "text/html; charset=utf-8"}, b"<!doctype html><title>Nothing here</title>")
    with site_that_answers(page) as (url, _), pytest.raises(client.NotFound) as refused:
        client.Winnow(url, "wn_x").project("demo")
    assert refused.value.detail == f"{url}/api/v1/projects/demo answered with text/html."


@pytest.mark.parametrize("errors", [["no quota"], "no quota", [{"message": "no quota"}], {"quota": 0}])
def test_a_proxy_whose_errors_have_another_form_is_still_a_problem(errors: object) -> None:
    refusal = (403, {"Content-Type": "application/json"}, json.dumps({"errors": errors, "detail": "Denied"}).encode())
    with site_that_answers(refusal) as (url, _), pytest.raises(client.NotAllowed, match="Denied") as refused:
        client.Winnow(url, "wn_x").project("demo")
    assert refused.value.errors == ()


def test_a_decision_behind_a_proxy_that_weakens_tags_keeps_its_version() -> None:
    sample = answer({**shown("/samples/7"), "version": 2})
    decided = answer({**shown("/samples/7/decisions", "POST"), "action": "approve"}, ETag='W/"3"')
    with site_that_answers(sample, decided) as (url, _):
        found = client.Winnow(url, "wn_x").sample("7")
        assert found.approve().action == "approve"
        assert found.version == 3


@pytest.mark.parametrize("path", ["/projects/demo/stats", "projects/demo/stats", "/api/v1/projects/demo/stats"])
def test_a_path_can_be_given_as_the_site_gives_it(path: str) -> None:
    with site_that_answers(answer({})) as (url, asked):
        client.Winnow(url, "wn_x").request("GET", path)
    assert asked == ["/api/v1/projects/demo/stats"]


@pytest.mark.parametrize(
    "use", [lambda project: project.decide("132", "approve"), lambda project: project.evaluate("tuned", split="1")]
)
def test_one_text_is_no_list(use: Callable[[client.Project], object]) -> None:
    """The letters of an id would be the ids of other samples."""
    with site_that_answers(answer(shown("/projects/demo"))) as (url, asked):
        project = client.Winnow(url, "wn_x").project("demo")
        with pytest.raises(TypeError, match=r"is a list, such as \['(132|tuned)'\], not a text"):
            use(project)
    assert asked == ["/api/v1/projects/demo"]


def test_filters_take_sets_and_numbers() -> None:
    assert query({"run": [1, 2], "bucket": {"final"}}) == [("run", "1,2"), ("bucket", "final")]
    assert query({"flags": [["leak", "flip"], ["refusal"]]}) == [("flags", "leak,flip"), ("flags", "refusal")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("kind = 3", "kind is not text"),
        ('project = ["demo"]', "project is not text"),
        ("budget = [1]", "budget is not a number"),
        ("budget = true", "budget is not a number"),
        ('params = "x"', "params is not a table"),
    ],
)
def test_a_run_file_with_a_wrong_type_names_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    monkeypatch.setenv("WINNOW_TOKEN", "wn_x")
    config = tmp_path / "run.toml"
    config.write_text(line)
    with pytest.raises(SystemExit, match=f"run.toml: {said}"):
        command.main(["run", "--config", str(config)])


def test_a_folder_that_cannot_be_made_is_refused_before_the_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_TOKEN", "wn_x")
    (tmp_path / "file").touch()
    with site_that_answers(answer(shown("/projects/demo"))) as (url, asked), pytest.raises(SystemExit):
        options = ["--project", "demo", "--recipe", "weekly", "--to", str(tmp_path / "file/exported")]
        command.main(["--url", url, "export", *options])
    assert asked == ["/api/v1/projects/demo"]


def test_a_list_of_the_asynchronous_client_refuses_a_plain_loop_and_is_read_afterwards() -> None:
    async def read() -> None:
        async with client.AsyncWinnow(url, "wn_x") as winnow:
            projects = winnow.projects(q=["a", "b"])
            assert repr(projects) == "<Rows /projects?q=a,b>"
            with pytest.raises(TypeError, match="`async for`"):
                list(projects)
            assert [project async for project in projects] == []

    with site_that_answers(answer({"data": [], "next_cursor": None})) as (url, _):
        asyncio.run(asyncio.wait_for(read(), 10))


def test_a_notebook_shows_what_a_call_takes() -> None:
    with client.Winnow("http://winnow.example", "wn_x") as winnow:
        assert list(inspect.signature(winnow.project).parameters) == ["slug"]
