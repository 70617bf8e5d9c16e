"""Traces, metrics and errors as a collector and Sentry receive them: complete, and without content or keys."""

import gzip
import http.server
import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.deploy.containers import eventually
from tests.deploy.rest import Caller, is_healthy, new_token, run_a_duel
from tests.serving import free_port, serving

INVITATION = "secret-of-an-invitation"
ROOT = Path(__file__).resolve().parents[2]
KEY, TRANSCRIPT = "sk-key-of-this-test-0123456789", "cat /srv/of-a-transcript"


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps the posted bodies, by path."""

    posted: dict[str, list[bytes]]

    def do_POST(self) -> None:  # noqa: N802 - the name is http.server's
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.posted[self.path].append(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[tuple[str, dict[str, list[bytes]]]]:
    """Host and port of a server on loopback, and the bodies posted to it."""
    posted: dict[str, list[bytes]] = defaultdict(list)
    with serving(Receiver, posted=posted) as server:
        yield f"127.0.0.1:{server.server_port}", posted


def _environment(folder: Path, **settings: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "SENTRY_"))}
    for name in ("DATABASE_URL", "CELERY_BROKER_URL", "FILES_URL", "PYTEST_CURRENT_TEST"):
        inherited.pop(name, None)
    return inherited | {"WINNOW_DATA": str(folder), "MODEL_KEY_TEST": KEY} | settings


def _spans(posted: list[bytes]) -> list[tuple[str, Any]]:
    """Service and span of everything that was posted."""
    return [
        (next(row.value.string_value for row in of.resource.attributes if row.key == "service.name"), span)
        for body in posted
        for of in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in of.scope_spans
        for span in scope.spans
    ]


def _attributes(span: Any) -> dict[str, str]:
    return {row.key: row.value.string_value or str(row.value.int_value) for row in span.attributes}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.embedded
@pytest.mark.timeout(300)
def test_one_trace_goes_from_the_request_to_the_model_calls(
    receiver: tuple[str, dict[str, list[bytes]]], tmp_path: Path
) -> None:
    address, posted = receiver
    port = free_port()
    environment = _environment(
        tmp_path,
        **{"PORT": str(port), "WEB_PROCESSES": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{address}"},
        **{"OTEL_BSP_SCHEDULE_DELAY": "200", "OTEL_METRIC_EXPORT_INTERVAL": "500"},
    )
    with (tmp_path / "log").open("wb") as log:
        serving = subprocess.Popen(
            [sys.executable, "manage.py", "serve"], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            said = (tmp_path / "log").read_text
            eventually("it is healthy", lambda: is_healthy(client), log=said, seconds=150)
            made = subprocess.run(
                [sys.executable, *new_token("admin")[1:]],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            run_a_duel(Caller(client, made.stdout.split()[-1]), log=said)
            for path in (f"/invitations/{INVITATION}/", f"/invitations/{INVITATION}", f"/invitations/{INVITATION}/x/"):
                client.get(path)
        time.sleep(1.5)  # two intervals
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.wait(60)

    assert said().count("GET /invitations/[hidden]") == 3
    assert INVITATION not in said()
    spans = _spans(posted["/v1/traces"])
    calls = [span for _, span in spans if span.name == "model call"]
    assert len(calls) >= 36
    assert {"winnow.run_id", "winnow.item_id", "winnow.task_id", "winnow.request_id"} <= set(_attributes(calls[0]))
    traced = {(service, span.name) for service, span in spans if span.trace_id == calls[0].trace_id}
    assert ("winnow-web", "POST api/v1/projects/<slug>/runs") in traced
    assert ("winnow-web", "apply_async/curation.runs.tasks.work") in traced
    assert ("winnow-worker", "run/curation.runs.tasks.work") in traced
    assert ("winnow-worker", "stage") in traced
    assert ("winnow-worker", "SELECT") in traced
    measured = [
        metric.name
        for body in posted["/v1/metrics"]
        for of in ExportMetricsServiceRequest.FromString(body).resource_metrics
        for scope in of.scope_metrics
        for metric in scope.metrics
    ]
    assert {"winnow.duration", "http.server.request.duration"} <= set(measured)
    everything = b"".join(body for bodies in posted.values() for body in bodies)
    for content in (
        b"last line of file",
        b"THOUGHT",
        b"src/parser.py",
        KEY.encode(),
        b"INSERT INTO",
        INVITATION.encode(),
    ):
        assert content not in everything, content


FAILING = f"""
import logging, sys, types, django
from django.conf import settings
django.setup()
from django.db import OperationalError
from django.http import HttpResponse
from django.test import Client
from django.urls import path
from curation.web.telemetry import bind

def fail(request, slug):
    key = {KEY!r}
    raise ValueError({TRANSCRIPT!r} + key)

def broken_for_invitations(get_response):
    def respond(request):
        if request.path.startswith("/invitations/"):
            raise ConnectionError("no answer for " + request.path)
        return get_response(request)

    return respond

pages = types.ModuleType("failing_pages")
pages.broken_for_invitations = broken_for_invitations
pages.urlpatterns = [path("fail/<slug:slug>/", fail)]
pages.handler500 = lambda request: HttpResponse(status=500)
sys.modules["failing_pages"] = pages
settings.ROOT_URLCONF = "failing_pages"
Client(raise_request_exception=False).post(
    "/fail/ship/?q=" + {TRANSCRIPT!r}, {{"text": {TRANSCRIPT!r}}}, headers={{"X-Api-Key": {KEY!r}}}
)
settings.MIDDLEWARE = ["failing_pages.broken_for_invitations"]
Client(raise_request_exception=False).get("/invitations/{INVITATION}/")
with bind(run_id=7, item_id=8):
    try:
        try:
            raise KeyError({TRANSCRIPT!r})
        except KeyError as error:
            raise OperationalError("connection refused") from error
    except OperationalError:
        logging.getLogger("curation.runs").exception("item %s", {TRANSCRIPT!r})
logging.getLogger("LiteLLM").error(f"the answer was {TRANSCRIPT}")
import sentry_sdk
sentry_sdk.flush(10)
"""


def test_sentry_gets_errors_without_content_or_keys(
    receiver: tuple[str, dict[str, list[bytes]]], tmp_path: Path
) -> None:
    address, posted = receiver
    settings = {"SENTRY_DSN": f"http://public@{address}/1", "DJANGO_SETTINGS_MODULE": "config.settings"}
    done = subprocess.run(
        [sys.executable, "-c", FAILING, "--key", KEY],
        cwd=ROOT,
        env=_environment(tmp_path, **settings, ALLOWED_HOSTS="testserver"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    # An envelope is lines of JSON: its header, the item's header, the event.
    events = [json.loads(body.splitlines()[2]) for body in posted["/api/1/envelope/"]]
    found = {event["exception"]["values"][-1]["type"]: event for event in events if "exception" in event}
    assert set(found) == {"ValueError", "OperationalError", "ConnectionError"}
    assert found["ConnectionError"]["transaction"] == "/invitations/[hidden]"
    assert len(found["ValueError"]["tags"]["request_id"]) == 32
    assert found["ValueError"]["transaction"] == "/fail/{slug}/"
    assert found["ValueError"]["exception"]["values"][-1]["stacktrace"]["frames"][-1]["function"] == "fail"
    assert found["OperationalError"]["tags"] == {"run_id": "7", "item_id": "8"}
    assert found["OperationalError"]["logentry"] == {"message": "item %s"}
    assert [row.get("value") for row in found["OperationalError"]["exception"]["values"]] == [
        None,
        "connection refused",
    ]
    everything = b"".join(body for bodies in posted.values() for body in bodies)
    assert KEY.encode() not in everything
    assert INVITATION.encode() not in everything + (done.stdout + done.stderr).encode()
    assert b"of-a-transcript" not in everything


@pytest.mark.parametrize("setting", ["OTEL_EXPORTER_OTLP_ENDPOINT", "SENTRY_DSN"])
def test_a_receiver_without_its_packages_is_refused_with_the_remedy(setting: str, tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['opentelemetry.sdk.trace'] = sys.modules['sentry_sdk'] = None; import config.wsgi"
    done = subprocess.run(
        [sys.executable, "-c", hidden],
        cwd=ROOT,
        env=_environment(tmp_path, **{setting: "http://public@127.0.0.1:9/1"}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    last = done.stderr.strip().splitlines()[-1]
    assert f"{setting} is set, but a package that it needs is not installed" in last
    assert "requirements/telemetry.txt" in last
