"""The REST API of a deployed product as a script sees it, and a duel run through it on scripted models."""

import json
import re
from collections.abc import Callable

import httpx
from pydantic import BaseModel

from tests.deploy.containers import eventually


def new_token(user: str) -> list[str]:
    """The command that prints one with all scopes."""
    words = ["python", "manage.py", "token", "create", "--user", user]
    return [*words, "--scopes", "read,review,run,export,admin"]


class Items(BaseModel):
    total: int
    done: int
    failed: int


class Run(BaseModel):
    """The fields of a run that the tests read."""

    id: str
    kind: str
    state: str
    items: Items
    error: str | None
    result: dict[str, object] | None


def is_healthy(client: httpx.Client) -> bool:
    try:
        return client.get("/api/v1/health").status_code == 200
    except httpx.TransportError:
        return False


def sign_in(client: httpx.Client, username: str, password: str) -> bool:
    """Whether the form of the page accepts them; signed in or not, the client is as before."""
    form = client.get("/login/")
    assert form.status_code == 200
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.text)
    assert token is not None
    fields = {"username": username, "password": password, "csrfmiddlewaretoken": token[1]}
    answer = client.post("/login/", data=fields, headers={"Referer": str(client.base_url)})
    if answer.status_code == 302:
        assert client.get("/", follow_redirects=True).status_code == 200
    else:
        assert answer.status_code == 200, "a wrong password shows the form again"
    client.cookies.clear()
    return answer.status_code == 302


def run_a_duel(api: "Caller", *, before_the_run: Callable[[], None] = lambda: None, log: Callable[[], str]) -> int:
    """Import turns in a new project `ship`, have two scripted models answer and one judge; return the prompts."""
    api.create("/projects", {"slug": "ship", "name": "Ship"})
    for name in ("king", "challenger", "judge-careful"):
        api.create("/projects/ship/models", {"name": name, "model": f"scripted/{name}"})
    for kind, row in (("turns", _turns), ("pr_records", _record)):
        imported = api.finished(api.upload("/projects/ship/imports", kind=kind, rows=[row(n) for n in range(6)]))
        assert (imported.state, imported.items.failed) == ("succeeded", 0), (imported, log())
    prompts = len(api.rows("/projects/ship/prompts"))
    assert prompts == 12

    params = {"king_model": "king", "challenger_model": "challenger", "judges": ["judge-careful"], "min_judges": 1}
    launched = api.launch("/projects/ship/runs", {"kind": "duel", "params": params})
    before_the_run()
    run = api.finished(launched)

    assert run.state == "succeeded", (run, log())
    assert run.result is not None
    assert run.result["done"] == prompts
    duels = api.rows("/projects/ship/duels")
    assert len(duels) == prompts
    assert all(duel["score"] is not None for duel in duels)
    assert len(api.rows("/projects/ship/samples")) == prompts
    return prompts


def _instance(number: int) -> str:
    return f"example__parser-{number}"


def _turns(number: int) -> dict[str, object]:
    """A conversation with two assistant turns, each with a history."""
    listing = f"src/module_{number}.py\nsrc/parser.py\ntests/test_parser.py"
    return {
        "instance_id": _instance(number),
        "messages": [
            {"role": "system", "content": "You fix bugs with one shell command per answer."},
            {"role": "user", "content": f"The parser drops the last line of file {number}. Find out why."},
            {"role": "assistant", "content": "THOUGHT: First the files.\n\n```bash\nls src tests\n```"},
            {"role": "user", "content": f"<returncode>0</returncode>\n<output>\n{listing}\n</output>"},
            {"role": "assistant", "content": "THOUGHT: Read the parser.\n\n```bash\ncat src/parser.py\n```"},
        ],
    }


def _record(number: int) -> dict[str, object]:
    """The merged pull request that the challenger is shown."""
    return {
        "instance_id": _instance(number),
        "repo": "example/parser",
        "title": "Keep the last line",
        "issue": f"The parser drops the last line of file {number}.",
        "files": ["src/parser.py"],
        "description": "The loop ended one line early.",
        "patch": "--- a/src/parser.py\n+++ b/src/parser.py\n@@ -1 +1 @@\n-lines[:-1]\n+lines\n",
    }


class Caller:
    """The REST API as a script sees it."""

    def __init__(self, client: httpx.Client, bearer: str) -> None:
        self.client = client
        self.headers = {"Authorization": f"Bearer {bearer}"}

    def _answered(self, method: str, path: str, body: object = None) -> httpx.Response:
        answer = self.client.request(method, f"/api/v1{path}", json=body, headers=self.headers)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        return answer

    def create(self, path: str, body: object) -> None:
        self._answered("POST", path, body)

    def rows(self, path: str) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = self._answered("GET", f"{path}?limit=500").json()["data"]
        return rows

    def launch(self, path: str, body: object) -> Run:
        return Run.model_validate_json(self._answered("POST", path, body).content)

    def try_launch(self, path: str, body: object) -> httpx.Response:
        return self.client.post(f"/api/v1{path}", json=body, headers=self.headers)

    def upload(self, path: str, *, kind: str, rows: list[dict[str, object]]) -> Run:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        answer = self.client.post(
            f"/api/v1{path}",
            data={"kind": kind, "options": "{}"},
            files={"file": ("rows.jsonl", text.encode(), "application/x-ndjson")},
            headers=self.headers,
        )
        assert answer.status_code == 202, answer.text[:500]
        return Run.model_validate_json(answer.content)

    def finished(self, run: Run) -> Run:
        latest = run

        def over() -> bool:
            nonlocal latest
            latest = Run.model_validate_json(self._answered("GET", f"/runs/{run.id}").content)
            return latest.state in {"succeeded", "failed", "cancelled"}

        eventually(f"run {run.kind} ends", over, seconds=120)
        return latest
