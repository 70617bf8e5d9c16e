"""Imports by REST and by the page: answers, stored rows, previews and refusals."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from curation.duels.models import Prompt
from curation.projects.models import AuditEntry, Project
from curation.runs.models import Run
from tests.factories import make_bearer
from tests.imports.bringing import as_lines, chat, end, upload

pytestmark = pytest.mark.django_db(transaction=True)
IMPORTS = "/api/v1/projects/acme/imports"
CONTENT = as_lines([chat(1, 2), "{broken", chat(2)])


@pytest.fixture
def web() -> Iterator[str]:
    """A web server with a file, a redirect to it, a redirect to metadata, and a loop."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            target = {"/moved": "/turns.jsonl", "/metadata": "http://169.254.169.254/", "/loop": "/loop"}.get(self.path)
            self.send_response(302 if target else 200 if self.path.startswith("/turns.jsonl") else 404)
            if target:
                self.send_header("Location", target)
            self.end_headers()
            if not target:
                self.wfile.write(CONTENT)

        def log_message(self, *args: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def send(client: Client, ada: User, path: str = IMPORTS, **fields: Any) -> Any:
    file = SimpleUploadedFile("turns.jsonl", fields.pop("content", CONTENT))
    return client.post(path, {"kind": "turns", "file": file, **fields}, headers=make_bearer(ada))


def ask(client: Client, ada: User, body: Any, path: str = IMPORTS, **headers: str) -> Any:
    return client.post(path, body, "application/json", headers={**make_bearer(ada), **headers})


def test_an_upload_starts_a_run_that_takes_it_in(client: Client, ada: User, project: Project) -> None:
    answer = send(client, ada, options='{"turns_per_row": 1}')

    assert answer.status_code == 202, answer.content
    run = Run.objects.get()
    assert answer.headers["Location"] == f"/api/v1/runs/{run.pk}"
    assert answer.json()["state"] == "queued"
    assert (end(run).result["prompts"], run.result["source"]) == (2, "turns.jsonl")
    assert AuditEntry.objects.filter(action="run.launch", actor=ada).count() == 1


def test_the_same_idempotency_key_imports_once(client: Client, ada: User, project: Project) -> None:
    headers = {**make_bearer(ada), "Idempotency-Key": "k1"}
    for _ in range(2):
        file = SimpleUploadedFile("turns.jsonl", CONTENT)
        assert client.post(IMPORTS, {"kind": "turns", "file": file}, headers=headers).status_code == 202

    assert Run.objects.count() == 1


@pytest.mark.parametrize("path", ["/turns.jsonl?token=secret", "/moved"])
def test_a_url_is_fetched_by_the_run(client: Client, ada: User, project: Project, web: str, path: str) -> None:
    answer = ask(client, ada, {"source": web + path, "kind": "turns"})

    assert answer.status_code == 202, answer.content
    run = end(Run.objects.get())
    assert run.result["prompts"] == 3
    assert run.result["source"].startswith("127.0.0.1") and "secret" not in run.result["source"]


@pytest.mark.parametrize(
    ("path", "said"), [("/missing", "answered 404"), ("/metadata", "169.254.169.254"), ("/loop", "redirects more than")]
)
def test_a_url_that_cannot_be_fetched_fails_the_run_in_words(
    client: Client, ada: User, project: Project, web: str, path: str, said: str
) -> None:
    ask(client, ada, {"source": web + path, "kind": "turns"})

    run = end(Run.objects.get())
    assert run.state == "failed" and said in run.error
    assert not Prompt.objects.exists()


def test_a_download_over_the_limit_fails_the_run(
    client: Client, ada: User, project: Project, web: str, settings: Settings
) -> None:
    settings.MAX_UPLOAD_BYTES = 100
    ask(client, ada, {"source": f"{web}/turns.jsonl", "kind": "turns"})

    assert "is larger than" in end(Run.objects.get()).error


def test_private_addresses_are_refused_where_the_server_is_reached_by_others(
    client: Client, ada: User, project: Project, settings: Settings
) -> None:
    settings.ALLOW_PRIVATE_IMPORT_HOSTS = False

    for url in ("http://127.0.0.1/turns.jsonl", "http://10.0.0.1/turns.jsonl", "http://[::1]/turns.jsonl"):
        assert ask(client, ada, {"source": url, "kind": "turns"}).status_code == 422
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"kind": "poems"}, "kind"),
        ({"options": "{"}, "options"),
        ({"options": '{"count": -1}'}, "options.count"),
        ({"options": "[1]"}, "options"),
        ({"strict": "perhaps"}, "strict"),
    ],
)
def test_a_wrong_field_is_named(client: Client, ada: User, project: Project, fields: dict[str, str], path: str) -> None:
    answer = send(client, ada, **fields)

    assert (answer.status_code, [e["path"] for e in answer.json()["errors"]]) == (422, [path])
    assert not Run.objects.exists()


def test_an_upload_over_the_limit_is_413(client: Client, ada: User, project: Project, settings: Settings) -> None:
    settings.MAX_UPLOAD_BYTES = 1000
    just_over = send(client, ada, content=b"x" * 1001)
    far_over = send(client, ada, content=b"x" * 3_000_000)
    client.force_login(ada)
    file = SimpleUploadedFile("turns.jsonl", b"x" * 3_000_000)
    page = client.post(reverse("import-new", args=["acme"]), {"kind": "turns", "file": file})

    assert [just_over.status_code, far_over.status_code, page.status_code] == [413, 413, 413]
    assert far_over.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("body", ["{", "[1]", '"text"'])
def test_a_body_that_is_no_object_is_400(client: Client, ada: User, project: Project, body: str) -> None:
    assert ask(client, ada, body).status_code == 400


def test_an_empty_file_is_refused(client: Client, ada: User, project: Project) -> None:
    answer = send(client, ada, content=b"")

    assert (answer.status_code, answer.json()["code"]) == (422, "empty_file")


def test_a_preview_tells_layout_rows_and_errors_and_keeps_the_file(client: Client, ada: User, project: Project) -> None:
    found = send(client, ada, f"{IMPORTS}/preview").json()

    assert (found["format"], found["layout"], found["unit"]) == ("JSON lines", "chat rows (messages)", "turns")
    assert (found["rows"], found["units"], found["read"]) == (3, 3, 3)
    assert found["columns"] == ["instance_id", "messages"]
    assert [entry["label"] for entry in found["shown"]] == ["row 1, turn 2", "row 1, turn 4", "row 3, turn 2"]
    assert [error["row"] for error in found["errors"]] == [2]
    assert not Run.objects.exists() and not Prompt.objects.exists()

    assert ask(client, ada, {"kind": "turns", "upload": found["upload"]}).status_code == 202
    assert end(Run.objects.get()).result["prompts"] == 3


@pytest.mark.parametrize("kind", ["turns", "samples", "eval_rows"])
def test_the_preview_the_result_and_the_page_account_for_every_field(
    client: Client, ada: User, project: Project, kind: str
) -> None:
    messages = [{"role": "user", "content": "Fix it."}, {"role": "assistant", "content": "a\x00b", "mood": "calm"}]
    rows = [{"messages": messages, "resolved": True, "language": "python", "logs": [1]}, {"messages": messages[1:]}]
    # A prompt has no place for the outcome and the metadata of a run.
    no_place = "ignored: only a trajectory has a place for it"
    metadata, reward = (no_place, no_place) if kind == "turns" else ("metadata", "reward.resolved")
    expected = [
        {"field": "language", "rows": 1, "becomes": metadata},
        {"field": "logs", "rows": 1, "becomes": "ignored: a list or an object, unless it is mapped to metadata"},
        {"field": "messages", "rows": 1, "becomes": "steps"},
        {"field": "messages[].content", "rows": 1, "becomes": "characters replaced by U+FFFD"},
        {"field": "messages[].mood", "rows": 1, "becomes": "ignored"},
        {"field": "resolved", "rows": 1, "becomes": reward},
    ]

    found = send(client, ada, f"{IMPORTS}/preview", content=as_lines(rows), kind=kind).json()
    assert found["account"] == expected
    assert ask(client, ada, {"kind": kind, "upload": found["upload"]}).status_code == 202
    run = end(Run.objects.get())
    assert (run.result["account"], run.result["bad_rows"]) == (expected, 1)
    client.force_login(ada)
    page = client.get(reverse("run-page", args=["acme", run.pk])).content.decode()
    assert "What becomes of each field" in page and reward in page


@pytest.mark.parametrize("kind", ["turns", "samples", "eval_rows"])
def test_a_mapping_reads_rows_of_an_unknown_layout(client: Client, ada: User, project: Project, kind: str) -> None:
    log = [{"role": "narrator", "content": "Fix it."}, {"role": "coder", "content": "I look."}]
    options = {"mapping": {"messages": "episode.log", "roles": {"narrator": "user", "coder": "agent"}}}
    content = as_lines([{"episode": {"log": log}}])

    refused = send(client, ada, f"{IMPORTS}/preview", content=content, kind=kind).json()
    assert len(refused["errors"]) == 1
    body = {"kind": kind, "upload": refused["upload"], "options": options}
    assert ask(client, ada, body).status_code == 202
    assert end(Run.objects.get()).result["bad_rows"] == 0
    body["options"] = {"mapping": {"roles": {"narrator": "robot"}}}
    wrong = ask(client, ada, body)
    assert (wrong.status_code, wrong.json()["errors"][0]["path"]) == (422, "options.mapping.roles.narrator")


def test_a_preview_of_a_url_and_of_what_cannot_be_read(client: Client, ada: User, project: Project, web: str) -> None:
    path = f"{IMPORTS}/preview"

    assert ask(client, ada, {"source": f"{web}/turns.jsonl", "kind": "turns"}, path).json()["units"] == 3
    assert ask(client, ada, {"source": f"{web}/missing", "kind": "turns"}, path).status_code == 422
    assert send(client, ada, path, content=b"PK\x03\x04").json()["code"] == "unreadable_source"
    unknown = send(client, ada, path, content=b'{"a": 1}\n').json()
    assert (unknown["layout"], unknown["units"], len(unknown["errors"])) == ("", 0, 1)


def test_a_missing_extension_is_named(client: Client, ada: User, project: Project, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOME", "/nonexistent")
    ask(client, ada, {"source": "hf://datasets/acme/turns/rows.parquet", "kind": "turns"})
    import duckdb

    from curation.imports.sources import parquet

    class Offline:
        def __init__(self) -> None:
            self.real = duckdb.connect()

        def execute(self, query: str, *args: Any) -> Any:
            if "httpfs" in query:
                raise duckdb.IOException("IO Error: Failed to download extension")
            return self.real.execute(query, *args)

        def close(self) -> None:
            self.real.close()

    monkeypatch.setattr(parquet, "_connect", Offline)
    run = end(Run.objects.get())

    assert run.error.endswith(
        "hf:// and s3:// need DuckDB's httpfs extension, which could not be loaded: "
        "IO Error: Failed to download extension"
    )


def test_the_page_previews_then_imports_the_stored_file(client: Client, ada: User, project: Project) -> None:
    client.force_login(ada)
    url = reverse("import-new", args=["acme"])
    file = SimpleUploadedFile("turns.jsonl", as_lines([chat(1), {"messages": "<script>alert(1)</script>"}]))

    assert "Import rows" in client.get(url).content.decode()
    shown = client.post(url, {"kind": "turns", "file": file, "then": "preview"})
    key = shown.context["form"]["upload"].value()
    assert "chat rows (messages)" in shown.content.decode() and "<script>alert" not in shown.content.decode()
    assert not Run.objects.exists()
    started = client.post(url, {"kind": "turns", "upload": key, "count": "1", "seed": "3"})

    run = Run.objects.get()
    assert started.headers["Location"] == reverse("run-page", args=["acme", run.pk])
    assert run.params["options"] == {"count": 1, "seed": 3}
    assert end(run).result["prompts"] == 1


def test_the_page_shows_at_once_what_became_of_a_key_that_is_there_twice(
    client: Client, ada: User, project: Project
) -> None:
    client.force_login(ada)
    row = as_lines([chat(1)]).replace(b"{", b'{"note": 1, "note": 2, ', 1)
    url, given = reverse("import-new", args=["acme"]), {"kind": "turns", "upload": upload(project, row)}
    shown = client.post(url, {**given, "then": "preview"}).content.decode()
    client.post(url, given)
    done = client.get(reverse("run-page", args=["acme", end(Run.objects.get()).pk])).content.decode()
    for page in (shown, done):
        assert "<strong>(twice in an object) note</strong>: ignored but for the last value, in 1 row." in page


def test_the_page_says_what_is_missing(client: Client, ada: User, project: Project) -> None:
    client.force_login(ada)

    refused = client.post(reverse("import-new", args=["acme"]), {"kind": "turns"})

    assert refused.status_code == 422
    assert "Give either a file or a “source”" in refused.content.decode()
    assert not Run.objects.exists()


ANSWERED = {**chat(1), "messages": chat(1)["messages"][:-1]}


class TestRecognition:
    """The page tells the kind of a file and of its rows before anything runs."""

    @pytest.fixture
    def send_page(self, client: Client, ada: User, project: Project) -> Callable[..., Any]:
        client.force_login(ada)

        def send_page(content: bytes, kind: str = "") -> Any:
            file = SimpleUploadedFile("rows", content)
            return client.post(reverse("import-new", args=["acme"]), {"kind": kind, "file": file})

        return send_page

    @pytest.mark.parametrize(
        ("row", "kind"),
        [
            ({"instance_id": "acme__billing-1", "title": "Wrong total", "issue": "It is wrong"}, "pr_records"),
            ({"prompt": "a", "chosen": "b", "rejected": "c"}, "samples"),
            ({**ANSWERED, "task_id": 37, "difficulty": "warmup"}, "eval_rows"),
        ],
    )
    def test_the_kind_of_the_rows_is_recognised(
        self, send_page: Callable[..., Any], row: dict[str, Any], kind: str
    ) -> None:
        assert send_page(as_lines([row])).status_code == 302
        assert Run.objects.get().params["kind"] == kind

    def test_rows_of_several_kinds_are_asked_about(self, send_page: Callable[..., Any]) -> None:
        page = send_page(as_lines([ANSWERED])).content.decode()
        assert "These rows can be imported as" in page and "Agent turns" in page
        assert not Run.objects.exists()

    def test_rows_of_another_kind_are_refused_with_its_name(self, send_page: Callable[..., Any]) -> None:
        page = send_page(as_lines([{"instance_id": "a__b-1", "issue": "It is wrong"}]), "turns").content.decode()
        assert "They can be imported as “Pull-request records” (pr_records): choose that." in page
        assert not Run.objects.exists()

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"\x89PNG\r\n\x1a\n" + b"\x00" * 40, "The file is a PNG image"),
            (b"name,poem\na,b\nc,d\n", "No kind of import can read the first rows"),
            (b"# Notes\n\nSome words.\n", "The file is text, but not JSON: it begins with &#x27;# Notes&#x27;"),
            (b"\x01\x02\x00\x04" * 9, "The file is binary, of an unknown format"),
            (b"<!DOCTYPE html><html></html>", "The file is a web page"),
            (as_lines([{"poem": "x"}]), "No kind of import can read the first rows"),
        ],
        ids=["png", "csv", "text", "binary", "html", "other rows"],
    )
    def test_another_file_is_refused_as_what_it_is(
        self, send_page: Callable[..., Any], content: bytes, words: str
    ) -> None:
        refused = send_page(content, "")
        assert (refused.status_code, Run.objects.count()) == (422, 0)
        assert words in refused.content.decode()

    def test_a_preview_names_the_kinds_that_fit(self, client: Client, ada: User, project: Project) -> None:
        file = SimpleUploadedFile("rows", as_lines([{**ANSWERED, "task_id": 1}, "no row"]))
        path = "/api/v1/projects/acme/imports/preview"
        found = client.post(path, {"kind": "turns", "file": file}, headers=make_bearer(ada)).json()
        assert [(one["kind"], one["rows"]) for one in found["kinds"]][0] == ("eval_rows", 1)
        assert (found["kind"], found["title"]) == ("turns", "Agent turns")


def test_an_import_again_leads_back_to_the_list_of_its_rows(client: Client, ada: User, project: Project) -> None:
    client.force_login(ada)
    params = {"kind": "scenarios", "source": "https://example.org/rows.jsonl"}
    run = Run.objects.create(project=project, kind="import", params=params, state="succeeded")
    page = client.get(reverse("import-new", args=["acme"]), {"from": run.pk}).content.decode()
    crumb = f'<a href="{reverse("scenario-list", args=["acme"])}">Scenarios</a><span>Import</span>'
    assert crumb in page
    refused = client.post(f"{reverse('import-new', args=['acme'])}?from={run.pk}", {"kind": "", "source": ""})
    assert refused.status_code == 422 and crumb in refused.content.decode()
