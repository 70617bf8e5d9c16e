"""Every request of the Python client is one that OpenAPI declares, and it reads only fields of the declared answers.

The server answers with the examples of the document, which `tests/docs/test_openapi.py` holds against the schemas.
"""

import asyncio
import hashlib
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, assert_type

import httpx
import pytest

import winnow_client as client
from deploy.client_schemas import TARGET, source
from tests.contract import document, example, operations, why_wrong
from winnow_client.calls import Async, Sync, call

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


@pytest.fixture(params=["blocking", "asyncio"])
def winnow(site: Site, request: pytest.FixtureRequest) -> Any:
    kind = client.Winnow if request.param == "blocking" else client.AsyncWinnow
    found = kind("http://winnow.example", "wn_x", attempts=1)
    found._transport._http._transport = httpx.MockTransport(site.answer)
    return found


async def settled(found: Any) -> Any:
    """Return what a call returns; a list is read to its end."""
    if inspect.isawaitable(found):
        found = await found
    if isinstance(found, list):
        return [await settled(one) for one in found]
    if isinstance(found, client.Rows):
        await settled(found.count())
        return [row async for row in found] if found._transport.is_async else list(found)
    return found


def got(found: Any) -> Any:
    return asyncio.run(settled(found))


@pytest.fixture
def project(winnow: Any) -> Any:
    return got(winnow.project("demo"))


@pytest.fixture
def export(winnow: Any) -> Any:
    found = got(winnow.export("12"))
    file = found.files[0].model_copy(update={"name": "dpo.train.jsonl", "format": "dpo", "split": "train"})
    found.files = [file.model_copy(update={"sha256": hashlib.sha256(FILE).hexdigest()})]
    return found


@pytest.fixture
def run(winnow: Any) -> Any:
    found = got(winnow.run("12"))
    found.state, found.result = "succeeded", {"export": "12", "evaluation": "7"}
    return found


def check(one: Any, site: Site, calls: Calls) -> None:
    """Make every public call of an object, and read its fields and those of what it returns."""
    members = {name for kind in type(one).__mro__ if kind.__module__.startswith(client.__name__) for name in vars(kind)}
    named = {name for name in members if isinstance(getattr(type(one), name, None), FunctionType | call)}
    assert {name for name in named if not name.startswith(("_", "model_"))} == set(calls)
    for name, make in calls.items():
        before = len(site.seen)
        got(make(one))
        assert len(site.seen) > before or name in {"close", "wait"}, f"{name} made no request"
    assert site.wrong == []


def test_the_site(winnow: Any, site: Site) -> None:
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
        "me": lambda one: one.me(),
    }
    check(winnow, site, calls)


def test_a_project(project: Any, site: Site, tmp_path: Path) -> None:
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
        "judge_trials": lambda one: one.judge_trials(),
        "approval_models": lambda one: one.approval_models(),
        "label_errors": lambda one: one.label_errors(),
        "clusters": lambda one: one.clusters(of="failures"),
        "duels": lambda one: one.duels(run="12"),
        "verdicts": lambda one: one.verdicts(run="12"),
        "calls": lambda one: one.calls(run="12"),
        "trajectories": lambda one: one.trajectories(),
        "agents": lambda one: one.agents(run="12"),
        "scenarios": lambda one: one.scenarios(status="admitted"),
        "preview_export": lambda one: one.preview_export(recipe),
        "export": lambda one: [one.export(given) for given in (recipe, "weekly")],
        "exports": lambda one: one.exports(archived=True),
        "splits": lambda one: one.splits(),
        "evaluate": lambda one: one.evaluate(["base", "tuned"], split="3", budget="2"),
        "evaluations": lambda one: one.evaluations(),
    }
    check(project, site, calls)


def test_a_run(run: Any, site: Site) -> None:
    def ended(found: Any) -> object:
        found.state, found.result = "succeeded", {"export": "12", "evaluation": "7"}
        return found.wait()

    calls: Calls = {
        "refresh": lambda one: [one.refresh(), one.refresh()],
        "cancel": lambda one: one.cancel(),
        "retry_failed": lambda one: one.retry_failed(),
        "items_in": lambda one: one.items_in("failed", "skipped"),
        "recorded_calls": lambda one: one.recorded_calls(status="failed"),
        "wait": ended,
        "export": lambda one: one.export(),
        "evaluation": lambda one: one.evaluation(),
    }
    check(run, site, calls)


def test_a_sample(winnow: Any, site: Site) -> None:
    calls: Calls = {
        "refresh": lambda one: one.refresh(),
        "decide": lambda one: one.decide("flag", reason="names a person", seconds=7.5),
        "approve": lambda one: one.approve(preference="challenger", comment="reads first"),
        "reject": lambda one: one.reject("leaks"),
        "undo": lambda one: one.undo(),
        "revise": lambda one: one.revise("ls", note="shorter"),
        "decisions": lambda one: one.decisions(),
    }
    check(got(winnow.sample("4711")), site, calls)


def test_an_audit_and_its_guarantee(winnow: Any, site: Site) -> None:
    calls: Calls = {
        "refresh": lambda one: one.refresh(),
        "extend": lambda one: one.extend(),
        "approve": lambda one: one.approve(keep_alive=0.02),
    }
    check(got(winnow.audit("3")), site, calls)
    calls = {"refresh": lambda one: one.refresh(), "withdraw": lambda one: one.withdraw()}
    check(got(winnow.guarantee("7")), site, calls)


def test_an_export(export: Any, site: Site, tmp_path: Path) -> None:
    files = export.files

    def refreshed(found: Any) -> None:
        got(found.refresh())
        assert found.files
        found.files = files

    calls: Calls = {
        "refresh": refreshed,
        "download": lambda one: one.download(tmp_path / "files"),
        "rows": lambda one: [one.rows()],
        "dataset": lambda one: one.dataset(),
        "diff": lambda one: one.diff(one),
    }
    check(export, site, calls)


def test_an_evaluation(winnow: Any, site: Site) -> None:
    calls: Calls = {
        "refresh": lambda one: one.refresh(),
        "calls": lambda one: one.calls(model="base"),
        "compare": lambda one: one.compare(one, model_before="base", model_after="tuned"),
    }
    check(got(winnow.evaluation("7")), site, calls)


def test_rows(project: Any, site: Site) -> None:
    calls: Calls = {
        "first": lambda one: one.first(),
        "count": lambda one: one.count(),
        "to_dataframe": lambda one: one.to_dataframe(),
    }
    check(project.samples(status="pending"), site, calls)


def test_type_checkers_know_what_each_client_returns() -> None:
    """mypy checks the bodies, which do not run."""

    def blocking(winnow: client.Winnow) -> None:
        project = winnow.project("demo")
        assert_type(project.run("duel").wait().result, dict[str, Any] | None)
        assert_type([sample.score for sample in project.samples()], list[float | None])
        assert_type(project.samples().first(), client.Sample[Sync] | None)

    async def awaited(winnow: client.AsyncWinnow) -> None:
        project = await winnow.project("demo")
        assert_type((await (await project.run("duel")).wait()).result, dict[str, Any] | None)
        assert_type([sample.score async for sample in project.samples()], list[float | None])
        assert_type(await project.samples().first(), client.Sample[Async] | None)

    assert inspect.isfunction(blocking) and inspect.iscoroutinefunction(awaited)


def test_the_responses_are_those_of_the_document() -> None:
    assert compile(TARGET.read_text(), "", "exec").co_consts == compile(source(document()), "", "exec").co_consts, (
        "The API has changed: make client-schemas"
    )
