"""`/health`, `/ready`, `/metrics`."""

from decimal import Decimal
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from curation.runs.models import WorkerSeen
from tests.factories import make_bearer, make_project, make_run, make_sample, make_user

pytestmark = pytest.mark.django_db


def test_health_needs_no_token(client: Client) -> None:
    answer = client.get("/api/v1/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_health_tells_this_start_from_another_server(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_INSTANCE", "of this start")
    assert client.get("/api/v1/health").json() == {"status": "ok", "instance": "of this start"}


class TestReady:
    def test_a_missing_sandbox_is_reported_but_does_not_count(self, client: Client, settings: Settings) -> None:
        settings.SANDBOX = "none"
        answer = client.get("/api/v1/ready")
        parts = {part["name"]: part for part in answer.json()["parts"]}
        assert answer.status_code == 200
        assert parts["database"]["ok"] and parts["broker"]["ok"]
        assert parts["sandbox"] == {
            "name": "sandbox",
            "ok": False,
            "needed": False,
            "detail": "switched off by SANDBOX=none",
        }

    def test_a_missing_broker_is_a_503_without_its_password(self, client: Client, settings: Settings) -> None:
        settings.CELERY_BROKER_URL = "filesystem://"
        settings.CELERY_BROKER_TRANSPORT_OPTIONS = {"data_folder_out": "/nowhere/at/all"}
        answer = client.get("/api/v1/ready")
        assert (answer.status_code, answer.json()["ready"]) == (503, False)

    def test_a_demo_whose_project_is_incomplete_says_why(
        self, client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        mark = tmp_path / "demo.unfinished"
        mark.write_text("Run 3 of kind gate failed: no space")
        monkeypatch.setenv("WINNOW_DEMO_UNFINISHED", str(mark))
        answer = client.get("/api/v1/ready")
        parts = {part["name"]: part["detail"] for part in answer.json()["parts"]}
        assert (answer.status_code, parts["demo"]) == (503, "Run 3 of kind gate failed: no space")
        mark.unlink()
        assert client.get("/api/v1/ready").status_code == 200

    def test_a_host_whose_clock_is_wrong_is_named(self, client: Client) -> None:
        make_worker("sandbox@far", {"host": "far", "clock": -61.5})
        parts = {part["name"]: part for part in client.get("/api/v1/ready").json()["parts"]}
        assert not parts["clocks"]["ok"] and not parts["clocks"]["needed"]
        assert parts["clocks"]["detail"] == "The clock of worker sandbox@far is 61.5 s behind the database's."

    def test_workers_that_watch_other_folders_are_named(self, client: Client) -> None:
        make_worker("default@a", {"host": "a", "watched": "one"})
        parts = {part["name"]: part for part in client.get("/api/v1/ready").json()["parts"]}
        assert parts["watched folder"]["ok"]
        make_worker("default@b", {"host": "b", "watched": "other"})
        parts = {part["name"]: part for part in client.get("/api/v1/ready").json()["parts"]}
        assert not parts["watched folder"]["ok"] and not parts["watched folder"]["needed"]
        assert "default@a on a, default@b on b" in parts["watched folder"]["detail"]


def make_worker(name: str, storage: dict[str, object]) -> None:
    now = timezone.now()
    WorkerSeen.objects.create(name=name, queues="sandbox", started_at=now, seen_at=now, storage=storage)


class TestMetrics:
    def test_metrics_of_requests_runs_and_queues(self, client: Client) -> None:
        project = make_project("shell")
        make_run(project, state="succeeded", items_done=3, items_failed=1, items_total=4, cost=Decimal("0.25"), calls=7)
        make_sample(project)
        client.get("/api/v1/health")
        text = client.get("/api/v1/metrics").content.decode()
        for line in (
            'winnow_runs{state="succeeded"} 1.0',
            'winnow_items_total{outcome="failed"} 1.0',
            "winnow_calls_total 7.0",
            "winnow_cost_usd_total 0.25",
            'winnow_review_queue{project="shell"} 1.0',
        ):
            assert line in text
        assert 'winnow_http_requests_total{area="api",method="GET",status="200"}' in text

    def test_a_public_server_requires_an_admin_token(self, client: Client, settings: Settings) -> None:
        settings.LOOPBACK_ONLY = False
        user = make_user()
        assert client.get("/api/v1/metrics").status_code == 401
        assert client.get("/api/v1/metrics", headers=make_bearer(user, "read")).status_code == 403
        assert client.get("/api/v1/metrics", headers=make_bearer(user, "admin")).status_code == 200

    def test_with_a_token_set_metrics_and_details_need_it(self, client: Client, settings: Settings) -> None:
        settings.METRICS_TOKEN = "a token for Prometheus"
        headers = {"Authorization": f"Bearer {settings.METRICS_TOKEN}"}
        assert client.get("/api/v1/metrics").status_code == 401
        assert client.get("/api/v1/metrics", headers={"Authorization": "Bearer a token"}).status_code == 401
        assert client.get("/api/v1/metrics", headers=headers).status_code == 200
        assert client.get("/api/v1/health").json() == {"status": "ok"}
        assert client.get("/api/v1/ready").json() == {"ready": True, "parts": [], "sandboxes": []}
        assert client.get("/api/v1/ready", headers=headers).json()["parts"]


def test_the_docs_page_runs_no_inline_script(client: Client) -> None:
    client.force_login(make_user())
    answer = client.get("/api/v1/docs")
    page = answer.content.decode()
    assert "default-src 'self'" in answer["Content-Security-Policy"]
    scripts = [part.split(">")[0] for part in page.split("<script")[1:]]
    assert len(scripts) == 3
    assert all("src=" in script or 'type="application/json"' in script for script in scripts)
    assert "cdn" not in page
    assert " style=" not in page and "onload=" not in page


def test_every_call_with_a_body_has_an_example(client: Client) -> None:
    document = client.get("/api/v1/openapi.json").json()
    assert document["info"]["title"] == "Winnow"
    ours = ("/projects", "/projects/{slug}/members", "/tokens", "/projects/{slug}/models")
    for path in ours:
        body = document["paths"][f"/api/v1{path}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        schema = document["components"]["schemas"][body["$ref"].rsplit("/", 1)[1]]
        assert any("examples" in field for field in schema["properties"].values()), path
