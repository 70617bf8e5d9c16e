"""Every request of the Python client is one that OpenAPI declares, and it reads only fields of the declared answers.

The server answers with the examples of the document, which `tests/docs/test_openapi.py` holds against the schemas.
"""

import hashlib
import inspect
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.contract import example, operations, why_wrong
from winnow import client

FILE = b'{"messages": []}\n'
PARTS = re.compile(rb'name="([^"]+)"(?:; filename="[^"]*")?')
MESSAGES = [{"role": "user", "content": "Fix it."}, {"role": "assistant", "content": "```bash\nls\n```"}]
Calls = dict[str, Callable[[Any], object]]


class Site:
    """Answers with the example of each call, and keeps the errors of the requests."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.seen: list[str] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        content, kind = request.read(), request.headers.get("content-type", "")
        form = dict.fromkeys((one.decode() for one in PARTS.findall(content)), "") if "multipart" in kind else None
        body = json.loads(content) if "json" in kind else None
        address = request.url.raw_path.decode()
        self.seen.append(f"{request.method} {address}")
        found = operations(request.method, request.url.path)
        if wrong := why_wrong(request.method, address, body=body, form=form):
            self.wrong.append(f"{request.method} {address}: {wrong}")
        if not found:
            return httpx.Response(404)
        declared = {one["name"].lower() for one in found[0].get("parameters", ()) if one["in"] == "header"}
        sent = {"if-match", "if-none-match", "idempotency-key"} & set(request.headers)
        self.wrong += [f"{self.seen[-1]} sends {name}, which is not declared" for name in sorted(sent - declared)]
        if "/files/" in request.url.path:
            return httpx.Response(200, content=FILE)
        status, shown = example(found[0])
        if isinstance(shown, dict) and "next_cursor" in shown:
            shown = {**shown, "next_cursor": None}
            if "count" in request.url.params:
                shown["total"] = len(shown["data"])
        return httpx.Response(status, json=shown, headers={"ETag": '"2"'})


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def winnow(site: Site) -> Iterator[client.Winnow]:
    with client.Winnow("http://winnow.example", "wn_x", attempts=1) as found:
        found._http._transport = httpx.MockTransport(site.answer)
        yield found


@pytest.fixture
def project(winnow: client.Winnow) -> client.Project:
    return winnow.project("demo")


@pytest.fixture
def export(winnow: client.Winnow) -> client.Export:
    found = winnow.export("12")
    file = {"name": "dpo.train.jsonl", "format": "dpo", "split": "train", "rows": 1, "bytes": len(FILE)}
    found.data["files"] = [{**file, "sha256": hashlib.sha256(FILE).hexdigest()}]
    return found


@pytest.fixture
def run(winnow: client.Winnow) -> client.Run:
    found = winnow.run("12")
    found.data |= {"state": "succeeded", "result": {"export": "12", "evaluation": "7"}}
    return found


def check(one: Any, site: Site, calls: Calls) -> None:
    """Call every public method of an object and read every property."""
    members = dict(inspect.getmembers(type(one), lambda member: inspect.isfunction(member)))
    assert {name for name in members if not name.startswith("_")} == set(calls)
    for name, call in calls.items():
        before = len(site.seen)
        found = call(one)
        if isinstance(found, client.Rows):
            found.count()
            for row in found:
                if isinstance(row, client.Run | client.Sample | client.Export | client.Evaluation | client.Project):
                    read_properties(row)
        assert len(site.seen) > before or name in {"close", "wait"}, f"{name} made no request"
    read_properties(one)
    assert site.wrong == []


def read_properties(one: Any) -> None:
    for name, _ in inspect.getmembers(type(one), lambda member: isinstance(member, property)):
        getattr(one, name)


def test_the_site(winnow: client.Winnow, site: Site) -> None:
    calls: Calls = {
        "projects": lambda one: one.projects(archived=True),
        "project": lambda one: one.project("demo"),
        "create_project": lambda one: one.create_project("acme", "Acme"),
        "run": lambda one: one.run("12"),
        "sample": lambda one: one.sample("4711"),
        "export": lambda one: one.export("12"),
        "audit": lambda one: one.audit("3"),
        "guarantee": lambda one: one.guarantee("7"),
        "evaluation": lambda one: one.evaluation("7"),
        "request": lambda one: one.request("GET", "/projects/demo/leaderboard"),
        "close": lambda one: None,
    }
    check(winnow, site, calls)


def test_a_project(project: client.Project, site: Site, tmp_path: Path) -> None:
    file = tmp_path / "turns.jsonl"
    file.write_text(json.dumps({"messages": MESSAGES}) + "\n")
    address = "hf://datasets/acme/turns/data.parquet"
    recipe = {"formats": ["dpo"], "filter": {"status": "approved"}}
    calls: Calls = {
        "refresh": lambda one: one.refresh(),
        "change": lambda one: one.change(name="Acme", guidelines="Read first.", settings={"thresholds": {"final": 85}}),
        "stats": lambda one: one.stats(),
        "models": lambda one: one.models(),
        "add_model": lambda one: one.add_model("king", "scripted/king", family="scripted", max_concurrency=4),
        "import_from": lambda one: [one.import_from(source, kind="") for source in (file, address)],
        "import_file": lambda one: [
            one.import_file(file, options={"count": 1}, strict=True),
            one.import_file(tmp_path, kind="trajectories", options={"mapping": "our runs", "trained": "all"}),
        ],
        "import_rows": lambda one: one.import_rows([{"messages": MESSAGES}]),
        "save_mapping": lambda one: one.save_mapping("our runs", messages="log", roles={"coder": "agent"}),
        "mappings": lambda one: one.mappings(),
        "import_url": lambda one: one.import_url(address, options={"count": 1}),
        "run": lambda one: one.run("duel", {"king_model": "a"}, budget="5"),
        "estimate": lambda one: one.estimate("duel", {"king_model": "a"}),
        "runs": lambda one: one.runs(kind="duel", state=["queued", "running"]),
        "samples": lambda one: one.samples(status="pending", bucket=["final", "refined"], sort="-score"),
        "next_sample": lambda one: one.next_sample(order="borderline", filter={"repo": ["acme/billing"]}),
        "decide": lambda one: one.decide(["1", "2"], "reject", reason="leaks"),
        "decisions": lambda one: one.decisions(sample="4711"),
        "draw_audit": lambda one: one.draw_audit(filter={"kind": "turn"}, score="score", size=150, cluster="repo"),
        "audits": lambda one: one.audits(),
        "guarantees": lambda one: one.guarantees(),
        "approval_models": lambda one: one.approval_models(),
        "label_errors": lambda one: one.label_errors(),
        "clusters": lambda one: one.clusters(of="failures"),
        "duels": lambda one: one.duels(run="12"),
        "verdicts": lambda one: one.verdicts(run="12"),
        "calls": lambda one: one.calls(run="12"),
        "trajectories": lambda one: one.trajectories(),
        "scenarios": lambda one: one.scenarios(status="admitted"),
        "preview_export": lambda one: one.preview_export(recipe),
        "export": lambda one: [one.export(given) for given in (recipe, "weekly")],
        "exports": lambda one: one.exports(archived=True),
        "splits": lambda one: one.splits(),
        "evaluate": lambda one: one.evaluate(["base", "tuned"], split="3", budget="2"),
        "evaluations": lambda one: one.evaluations(),
    }
    check(project, site, calls)


def test_a_run(run: client.Run, site: Site) -> None:
    def ended(found: client.Run) -> object:
        found.data |= {"state": "succeeded", "result": {"export": "12", "evaluation": "7"}}
        return found.wait()

    calls: Calls = {
        "refresh": lambda one: [one.refresh(), one.refresh()],
        "cancel": lambda one: one.cancel(),
        "retry_failed": lambda one: one.retry_failed(),
        "items_in": lambda one: one.items_in("failed", "skipped"),
        "calls": lambda one: one.calls(status="failed"),
        "wait": ended,
        "export": lambda one: one.export(),
        "evaluation": lambda one: one.evaluation(),
    }
    check(run, site, calls)


def test_a_sample(winnow: client.Winnow, site: Site) -> None:
    calls: Calls = {
        "refresh": lambda one: one.refresh(),
        "decide": lambda one: one.decide("flag", reason="names a person", seconds=7.5),
        "approve": lambda one: one.approve(preference="challenger", comment="reads first"),
        "reject": lambda one: one.reject("leaks"),
        "undo": lambda one: one.undo(),
        "revise": lambda one: one.revise("ls", note="shorter"),
        "decisions": lambda one: one.decisions(),
    }
    check(winnow.sample("4711"), site, calls)


def test_an_audit_and_its_guarantee(winnow: client.Winnow, site: Site) -> None:
    calls: Calls = {"refresh": lambda one: one.refresh(), "approve": lambda one: one.approve(keep_alive=0.02)}
    check(winnow.audit("3"), site, calls)
    calls = {"refresh": lambda one: one.refresh(), "withdraw": lambda one: one.withdraw()}
    check(winnow.guarantee("7"), site, calls)


def test_an_export(export: client.Export, site: Site, tmp_path: Path) -> None:
    files = export.data["files"]

    def refreshed(found: client.Export) -> object:
        found.refresh()
        assert found.files and {"name", "format", "split", "sha256"} <= set(found.files[0])
        found.data["files"] = files
        return None

    calls: Calls = {
        "refresh": refreshed,
        "download": lambda one: one.download(tmp_path / "files"),
        "rows": lambda one: list(one.rows()),
        "dataset": lambda one: one.dataset(),
        "diff": lambda one: one.diff(one),
    }
    check(export, site, calls)


def test_an_evaluation(winnow: client.Winnow, site: Site) -> None:
    calls: Calls = {
        "refresh": lambda one: one.refresh(),
        "calls": lambda one: one.calls(model="base"),
        "compare": lambda one: one.compare(one, model_before="base", model_after="tuned"),
    }
    check(winnow.evaluation("7"), site, calls)


def test_rows(project: client.Project, site: Site) -> None:
    calls: Calls = {
        "first": lambda one: one.first(),
        "count": lambda one: one.count(),
        "to_dataframe": lambda one: one.to_dataframe(),
    }
    check(project.samples(status="pending"), site, calls)
