"""A client that is generated from the OpenAPI document makes a project, a scenario and a run, and reads a refusal."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZipFile

import pytest
from pytest_django.live_server_helper import LiveServer

from config.api import api
from curation.projects.models import Project
from curation.runs.models import Run
from curation.scenarios.bundles.document import EXAMPLE
from tests.factories import make_bearer, make_endpoint, make_prompt, make_user
from tests.parts import missing

# A second database changes nothing of a client.
pytestmark = [pytest.mark.embedded, pytest.mark.django_db(transaction=True)]
# Its requirements exclude those of LiteLLM, so it has an environment of its own.
GENERATOR = "openapi-python-client==0.29.1"
COMMAND = "openapi-python-client"
NAME = "generated_winnow"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of the client's package. The generator warns of parts that it cannot read, and a warning fails the
    test."""
    folder = tmp_path_factory.mktemp("client")
    document = folder / "openapi.json"
    document.write_text(json.dumps(api.get_openapi_schema(), default=str))
    words = ["generate", "--path", str(document), "--meta", "none", "--output-path", str(folder / NAME)]
    generator = [str(Path(sys.executable).with_name("uv")), "tool", "run", "--quiet", "--from", GENERATOR, COMMAND]
    if (installed := _run(*generator, "--version")).returncode:
        missing(f"uv cannot install {GENERATOR}: {installed.stderr}")
    made = _run(*generator, *words, "--fail-on-warning")
    assert made.returncode == 0, made.stdout + made.stderr
    sys.path.insert(0, str(folder))
    return NAME


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_it_makes_a_project_a_scenario_and_a_run_and_reads_a_404(generated: str, live_server: LiveServer) -> None:
    def part(name: str) -> ModuleType:
        return importlib.import_module(f"{generated}.{name}")

    models = part("models")
    token = make_bearer(make_user(is_staff=True), "read", "run", "admin")["Authorization"].removeprefix("Bearer ")
    client = part("client").AuthenticatedClient(base_url=live_server.url, token=token)

    def call(name: str, **values: Any) -> Any:
        return part(f"api.{name}").sync(client=client, **values)

    project = call("projects.post_project", body=models.ProjectIn(slug="made", name="Made"), idempotency_key="once")
    again = call("projects.post_project", body=models.ProjectIn(slug="made", name="Made"), idempotency_key="once")
    assert (project.slug, again.to_dict()) == ("made", project.to_dict())

    row = Project.objects.get(slug="made")
    scenario = call("scenarios.create_scenario", slug="made", body=models.Bundle.from_dict(EXAMPLE))
    assert scenario.id and row.scenarios.get().name == EXAMPLE["name"]

    archive = ZipFile(call("scenarios.download_bundles", slug="made").payload)
    assert [json.loads(archive.read(name))["name"] for name in archive.namelist()] == [EXAMPLE["name"]]

    make_prompt(row)
    make_endpoint(row, "king")
    params = models.RunInParams.from_dict({"model": "king"})
    run = call("runs.post_run", slug="made", body=models.RunIn(kind="king", params=params, budget="2.50"))
    assert run.id == str(Run.objects.get(kind="king").pk)

    missing = call("runs.get_run", run_id="999999")
    assert isinstance(missing, models.Problem)
    assert (missing.status, missing.code) == (404, "not_found")
    client.get_httpx_client().close()  # the server waits for an open connection
