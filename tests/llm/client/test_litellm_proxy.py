"""LiteLLM's own proxy as an endpoint: a real process in front of the model server, with a key."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from pytest_django import Settings

from curation.llm.endpoints.discover import served_with_key
from curation.llm.endpoints.keys import read_rules
from curation.projects.models import Project
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.models import Call, Run
from tests.factories import make_endpoint, make_project
from tests.model_server import ModelServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.embedded]
KEY = "sk-of-the-proxy-0123456789"
ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
    "PATH": "/usr/bin:/bin",
    "no_proxy": "*",
}
STARTS_WITHIN = 60.0


@pytest.fixture
def proxy(model_server: ModelServer, tmp_path: Path) -> Iterator[str]:
    """The base URL of the proxy."""
    behind = {"api_base": model_server.api_base, "api_key": "none"}
    models = {"judge": "openai/judge-a", "broken": "openai/broken"}
    config = {
        "model_list": [
            {"model_name": name, "litellm_params": {"model": model, **behind}} for name, model in models.items()
        ],
        "general_settings": {"master_key": KEY},
        "router_settings": {"num_retries": 0},
        "litellm_settings": {"telemetry": False},
    }
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(config))  # JSON is YAML
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-c", "from litellm import run_server; run_server()", "--config", str(path)]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            cwd=tmp_path,
            env={**ENVIRONMENT, "HOME": str(tmp_path)},
            stdout=log,
            stderr=log,
        )
    try:
        _wait(process, base, tmp_path / "log")
        yield f"{base}/v1"
    finally:
        process.kill()
        process.wait()


def _wait(process: subprocess.Popen[bytes], base: str, log: Path) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{base}/health/liveliness", timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail(f"the proxy did not start: {log.read_text()[-2000:]}")


def test_the_proxy_is_listed_tested_asked_and_its_errors_are_said(
    proxy: str, model_server: ModelServer, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY_PROXY", KEY)
    settings.MODEL_KEYS = read_rules(f"MODEL_KEY_PROXY={proxy.split('/')[2]}")
    project = make_project("shell")
    key = {"api_base": proxy, "api_key_env": "MODEL_KEY_PROXY", "price_in": 1, "price_out": 2}
    for name in ("plain", "streamed", "library", "broken"):
        provider = "litellm_proxy" if name == "library" else "openai"
        model = "broken" if name == "broken" else "judge"
        params = {"stream": True} if name != "plain" else {}
        make_endpoint(project, name, model=f"{provider}/{model}", params=params, **key)
    model_server.behave("judge-a", text='{"word": "ready"}', calls=True)
    model_server.behave("broken", error=1, status=400, detail="the context is too long")

    assert served_with_key(api_base=proxy, variable="MODEL_KEY_PROXY", project="shell") == ("broken", "judge")
    found = {name: _test(project, name) for name in ("plain", "streamed", "library", "broken")}

    for name in ("plain", "streamed", "library"):
        result = found[name].result
        assert (result["ok"], result["error"]) == (True, None)
        assert (result["streams"], result["takes_json_schema"], result["takes_tools"]) == (True, True, True)
        assert (result["first_token_ms"] is None) == (name == "plain")
        first = Call.objects.filter(run=found[name]).order_by("pk")[0]
        assert first.tokens_in and first.tokens_out and first.cost
    assert found["broken"].result["ok"] is False
    assert "the context is too long" in found["broken"].result["error"]
    assert KEY not in found["broken"].result["error"]


def _test(project: Project, name: str) -> Run:
    run = launch(project=project, kind="test", params={"model": name}, user=None)
    drive(run.pk)
    run.refresh_from_db()
    return run
