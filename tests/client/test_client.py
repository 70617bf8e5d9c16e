"""The Python client on the live server, with faults in between that a network really has."""

import builtins
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django.live_server_helper import LiveServer

import winnow_client as client
from curation.exports.models import Export as ExportRow
from curation.projects.models import Project as ProjectRow
from curation.review.models import Decision
from curation.runs.engine.worker import drive
from curation.runs.models import Run as RunRow
from curation.samples.models import Sample as SampleRow
from tests.client.faulty_proxy import AFTER, BEFORE, Proxy
from tests.contract import example, operations
from tests.exports.exporting import make_approved
from tests.factories import make_duel, make_sample
from winnow_client import command, transport
from winnow_client.records import record

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.portable]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def proxy(live_server: LiveServer) -> Iterator[Proxy]:
    with Proxy(live_server.url).running() as running:
        yield running


@pytest.fixture
def winnow(proxy: Proxy, token: str) -> Iterator[client.Winnow]:
    with client.Winnow(proxy.url, token) as site:
        yield site


@pytest.fixture
def project(winnow: client.Winnow, row: ProjectRow, proxy: Proxy) -> client.Project:
    found = winnow.project("acme")
    proxy.seen.clear()
    return found


def finish(run: client.Run) -> client.Run:
    """Work on the run like a worker, and wait for it."""
    for _ in range(5):
        drive(int(run.id))
    return run.wait(timeout=10)


def test_a_post_whose_answer_was_lost_is_done_once(project: client.Project, proxy: Proxy) -> None:
    """The site did it; the second try has the same key, and gets the first answer."""
    proxy.faults = [AFTER, BEFORE, (503, {"Retry-After": "0"})]
    made = project.add_model("king", "scripted/king")

    assert [model.name for model in project.models()] == ["king"] and made.name == "king"
    posts = [headers for method, _, headers in proxy.seen if method == "POST"]
    assert len(posts) == 4 and len({headers["idempotency-key"] for headers in posts}) == 1
    assert project.add_model("judge", "scripted/judge-brisk").name == "judge"
    assert [headers for method, _, headers in proxy.seen if method == "POST"][-1]["idempotency-key"] not in {
        headers["idempotency-key"] for headers in posts
    }


def test_a_change_that_is_not_safe_to_repeat_is_not_repeated(project: client.Project, proxy: Proxy) -> None:
    proxy.faults = [AFTER]
    with pytest.raises(client.ConnectionFailed):
        project.change(name="Acme")
    assert [method for method, _, _ in proxy.seen] == ["PATCH"]
    with pytest.raises(client.Stale) as stale:
        project.change(name="Other")
    assert stale.value.current["version"] == 2


def test_a_refused_request_waits_as_long_as_the_site_says(
    project: client.Project, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(transport, "sleep", waits.append)
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    proxy.faults = [(429, {"Retry-After": "7"}), (503, {"Retry-After": later}), (504, {})]
    assert project.samples().count() == 0
    assert waits[0] == 7 and 25 < waits[1] <= 30 and waits[2] == 0

    proxy.faults = [(429, {"Retry-After": "3600"})]
    with pytest.raises(client.RateLimited) as limited:
        project.samples().count()
    assert limited.value.retry_after == 3600 and limited.value.code == "http_429"
    proxy.faults = [(503, {"Retry-After": "0"})] * 6
    with pytest.raises(client.ServerFailed):
        project.samples().count()
    assert not proxy.faults


def test_problems_are_exceptions_with_their_fields(winnow: client.Winnow, project: client.Project) -> None:
    with pytest.raises(client.NotFound) as missing:
        winnow.project("nosuch")
    assert (missing.value.status, missing.value.code) == (404, "not_found") and missing.value.request_id
    with pytest.raises(client.Invalid) as wrong:
        list(project.samples(bucket="nosuch"))
    assert wrong.value.errors[0].path == "bucket" and "nosuch" in wrong.value.errors[0].message
    project.add_model("king", "scripted/king")
    with pytest.raises(client.Conflict, match="king"):
        project.add_model("king", "scripted/king")
    with pytest.raises(client.NotAllowed) as refused:
        winnow.create_project("other")
    assert refused.value.code == "may_not_create_projects"
    with (
        client.Winnow(str(winnow._transport._http.base_url), "wn_unknown") as stranger,
        pytest.raises(client.NotSignedIn),
    ):
        stranger.project("acme")
    with pytest.raises(client.ConnectionFailed, match="127.0.0.1:9"):
        client.Winnow("http://127.0.0.1:9", "wn_x", attempts=2).project("acme")


def test_samples_are_read_page_by_page_through_a_broken_connection(
    project: client.Project, row: ProjectRow, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [make_sample(row, score=score, repo=repo) for score, repo in ((90.0, "a,b"), (70.0, "c"), (50.0, "d"))]
    monkeypatch.setattr("winnow_client.rows.PAGE", 1)
    proxy.faults = [BEFORE, AFTER]
    found = list(project.samples(sort="-score"))
    assert [sample.id for sample in found] == [str(sample.pk) for sample in made]
    assert len(proxy.seen) == 5
    assert [sample.score for sample in project.samples(repo=["a,b", "d"], sort="score")] == [50.0, 90.0]
    assert project.samples(score_min=60.0).count() == 2 and project.samples(text="nosuchword").first() is None
    table = project.samples(sort="score").to_dataframe()
    assert list(table["score"]) == [50.0, 70.0, 90.0] and list(table["id"]) == [str(one.pk) for one in made[::-1]]


def test_a_table_or_a_dataset_without_its_package_says_what_to_install(
    project: client.Project, row: ProjectRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def refuse(name: str, *given: Any, **named: Any) -> Any:
        if name in ("pandas", "datasets"):
            raise ImportError(name)
        return real(name, *given, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(client.MissingPackage, match=r"pandas: pip install 'winnow-client\[data\]'"):
        project.samples().to_dataframe()
    export = record(client.Export, project._transport, example(operations("GET", "/exports/12")[0])[1])
    with pytest.raises(client.MissingPackage, match=r"datasets: pip install 'winnow-client\[data\]'"):
        export.dataset(export.files[0].split or "", format=export.files[0].format or "")


def test_a_decision_rests_on_the_version_that_was_read(
    project: client.Project, row: ProjectRow, winnow: client.Winnow
) -> None:
    pk = str(make_duel(row, status="pending").sample_id)
    mine, stale = winnow.sample(pk), winnow.sample(pk)
    assert mine.approve(preference="challenger", comment="reads the file").action == "approve"
    version = mine.version
    assert mine.refresh().status == "approved" and version == mine.version == SampleRow.objects.get(pk=pk).version
    with pytest.raises(client.Stale) as refused:
        stale.reject("leaks")
    assert refused.value.current["version"] == mine.version
    assert Decision.objects.count() == 1
    stale.refresh().reject("leaks")
    assert [one.action for one in project.decisions(sample=pk, sort="id")] == ["approve", "reject"]
    stale.undo()
    assert stale.refresh().status == "approved"

    many = [make_duel(row, status="pending").sample_id for _ in range(3)]
    answered = project.decide([*map(str, many), "999999"], "reject", reason="leaks")
    assert [one.ok for one in answered] == [True, True, True, False]


def test_a_decision_whose_answer_was_lost_is_made_once_and_leaves_its_version(
    project: client.Project, row: ProjectRow, winnow: client.Winnow, proxy: Proxy
) -> None:
    sample = winnow.sample(str(make_duel(row, status="pending").sample_id))
    proxy.faults = [AFTER, BEFORE]
    assert sample.approve().action == "approve"
    assert sample.version == SampleRow.objects.get(pk=sample.id).version
    proxy.faults = [AFTER]
    assert sample.undo().action == "approve"
    proxy.faults = [AFTER]
    assert sample.reject("leaks").action == "reject"

    assert list(Decision.objects.order_by("pk").values_list("action", flat=True)) == ["approve", "undo", "reject"]


def test_an_import_shows_its_progress_and_a_run_is_waited_for(
    project: client.Project, proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "turns.jsonl"
    messages = [{"role": "user", "content": "Fix it. " * 2000}, {"role": "assistant", "content": "```bash\nls\n```"}]
    file.write_text("".join(json.dumps({"instance_id": f"acme-{n}", "messages": messages}) + "\n" for n in range(20)))
    sent: list[tuple[int, int]] = []
    proxy.faults = [AFTER]
    run = project.import_file(file, options={"count": 10}, progress=lambda done, total: sent.append((done, total)))

    size = file.stat().st_size
    assert sent[-1] == (size, size) and sent.count((size, size)) == 2 and len(sent) > 4
    stored = RunRow.objects.get()
    assert (run.id, run.state, run.has_ended) == (str(stored.pk), "queued", False)
    with pytest.raises(client.RunTimeout, match="queued"):
        run.wait(timeout=0)
    proxy.seen.clear()
    run.refresh()
    run.refresh()
    assert [headers.get("if-none-match") is not None for _, _, headers in proxy.seen] == [False, True]
    shown: list[str] = []
    monkeypatch.setattr("winnow_client.transport.sleep", lambda seconds: drive(stored.pk))
    assert run.wait(timeout=60, progress=lambda found: shown.append(found.state)) is run
    assert run.state == "succeeded" and run.items["failed"] == 0 and shown[-1] == "succeeded"

    bad = finish(project.import_rows([{"messages": messages}, {"nothing": 1}]))
    assert bad.result and bad.result["bad_rows"] == 1
    assert [(row.key, row.state) for row in bad.items_in("skipped")] == [("row 2", "skipped")]
    cancelled = project.run("export", {"recipe": {"formats": ["dpo"]}}).cancel()
    with pytest.raises(client.RunFailed, match="cancelled"):
        cancelled.wait()


def test_an_export_becomes_files_rows_and_a_dataset(
    project: client.Project, row: ProjectRow, ada: User, proxy: Proxy, tmp_path: Path
) -> None:
    for number in range(3):
        make_approved(row, by=ada, challenger=f"THOUGHT: I read it.\n\n```bash\ncat file-{number}\n```")
    run = project.export({"formats": ["dpo", "sft-messages"], "filter": {"status": "approved"}})
    export = finish(run).export()
    listed = {file.name: file for file in export.files}

    proxy.faults = [AFTER, (503, {"Retry-After": "0"})]
    written = export.download(tmp_path / "files of it")
    assert {path.name for path in written} == set(listed)
    for path in written:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == listed[path.name].sha256
    rows = list(export.rows(format="dpo"))
    assert len(rows) == listed["dpo.train.jsonl"].rows == 3
    table = export.dataset("train", format="dpo")
    assert table.num_rows == 3 and set(table.column_names) == set(rows[0])
    assert table[0]["chosen"] == rows[0]["chosen"]
    with pytest.raises(client.NotFound, match=r"more than one file.*dpo train, sft-messages train"):
        export.dataset("train")
    with pytest.raises(client.NotFound, match="split val"):
        export.dataset("val")

    export.files = [listed["dpo.train.jsonl"].model_copy(update={"sha256": "0" * 64})]
    with pytest.raises(client.WrongFile):
        export.download(tmp_path / "wrong")
    assert not list((tmp_path / "wrong").iterdir())
    assert ExportRow.objects.count() == 1 and [one.id for one in project.exports()] == [export.id]


def test_it_needs_neither_django_nor_the_site(tmp_path: Path) -> None:
    """On a path that has the package and its requirements alone."""
    (tmp_path / "winnow_client").symlink_to(ROOT / "winnow_client")
    site = "{'django', 'curation', 'winnow', 'litellm', 'pandas', 'datasets'}"
    script = f"import sys, winnow_client; print(sorted({site} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
    assert (ROOT / "winnow_client/py.typed").exists()


def test_without_a_token_it_says_where_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINNOW_TOKEN", raising=False)
    with pytest.raises(ValueError, match="WINNOW_TOKEN"):
        client.Winnow("http://127.0.0.1:8000")


def test_winnow_remote_imports_runs_and_exports_on_the_site(
    project: client.Project,
    row: ProjectRow,
    ada: User,
    proxy: Proxy,
    token: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("WINNOW_TOKEN", token)
    monkeypatch.setenv("WINNOW_URL", proxy.url)

    def work(seconds: float) -> None:
        for live in RunRow.objects.filter(state__in=["queued", "running"]):
            drive(live.pk)

    monkeypatch.setattr("winnow_client.transport.sleep", work)

    def remote(*arguments: str) -> str:
        command.main(arguments)
        return capsys.readouterr().out

    messages = [{"role": "user", "content": "Fix it."}, {"role": "assistant", "content": "```bash\nls\n```"}]
    turns = tmp_path / "turns.jsonl"
    turns.write_text(json.dumps({"instance_id": "acme-1", "messages": messages}) + "\n{}\n")
    command.main(["import", str(turns), "--project", "acme", "--kind", "turns"])
    said = capsys.readouterr()
    assert json.loads(said.out)["result"]["prompts"] == 1 and "row 2: no messages" in said.err

    records = tmp_path / "records.jsonl"
    records.write_text('{"instance_id": "a__b-1", "repo": "a/b", "issue": "The total is wrong"}\n')
    told = json.loads(remote("import", str(records), "--project", "acme", "--strict"))
    assert (told["params"]["kind"], told["params"]["strict"], told["state"]) == ("pr_records", True, "succeeded")
    with pytest.raises(SystemExit, match=r"can be imported as .* or as “Agent turns” \(turns\)"):
        remote("import", str(turns), "--project", "acme")

    project.add_model("king", "scripted/king")
    config = tmp_path / "king.toml"
    config.write_text('kind = "king"\nproject = "acme"\nbudget = 2.5\n[params]\nmodel = "nobody"\n')
    printed = json.loads(remote("run", "--config", str(config), "--param", "model=king", "--follow"))
    assert (printed["kind"], printed["state"], printed["params"]["model"]) == ("king", "succeeded", "king")
    assert RunRow.objects.get(pk=printed["id"]).budget == Decimal("2.5")

    make_approved(row, by=ada, challenger="THOUGHT: I read it.\n\n```bash\ncat file\n```")
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps({"formats": ["dpo"], "filter": {"status": "approved"}}))
    written = remote("export", "--project", "acme", "--recipe", str(recipe), "--to", str(tmp_path / "out")).split()
    assert str(tmp_path / "out" / "dpo.train.jsonl") in written and all(Path(one).is_file() for one in written)

    config.write_text("kinds = 1")
    broken = tmp_path / "broken.toml"
    broken.write_text("kinds 1")
    for wrong, reason in (
        (["export", "--project", "acme", "--recipe", "x", "--to", str(tmp_path / "out")], "is not empty"),
        (["run", "--config", str(config)], "kinds is unknown"),
        (["run", "king", "--project", "nosuch"], "nosuch"),
        (["run", "king"], "--project"),
        (["run", "--config", str(broken)], "broken.toml: Expected"),
        (["import", str(tmp_path / "missing"), "--project", "acme"], f"Error: {tmp_path / 'missing'}: No such file"),
    ):
        with pytest.raises(SystemExit, match=reason):
            command.main(wrong)
