"""The scripts about exports in docs/api.md run as they are printed."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from curation.projects.models import Role
from curation.runs.engine.worker import drive
from curation.runs.models import Call, Item, Run
from tests.exports.exporting import export_of, make_approved
from tests.exports.hub.stub_hub import Hub
from tests.factories import make_project, make_user, set_history

pytestmark = pytest.mark.django_db(transaction=True)
DOCS = Path(__file__).resolve().parents[3] / "docs"


class Api:
    """`httpx.Client` of the page, answered without a server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, path: str, params: dict[str, Any] | None = None) -> Any:
        found = self._client.get(f"/api/v1{path}", params)
        assert found.status_code == 200, found.content
        return SimpleNamespace(content=b"".join(found)) if found.streaming else found

    def post(self, path: str, json: dict[str, Any]) -> Any:
        found = self._client.post(f"/api/v1{path}", json, "application/json")
        assert found.status_code in (200, 201, 202), found.content
        return found


def scripts() -> list[str]:
    blocks: list[str] = re.findall(r"```python\n(.*?)```", (DOCS / "api.md").read_text(), re.DOTALL)
    return [block for block in blocks if "/exports" in block]


def test_the_scripts_run(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    user = make_user()
    project = make_project("demo", user=user, role=Role.ADMIN)
    project.settings_json = {"hub": {"endpoint": hub.address, "token": "ACME_HUB_TOKEN", "namespaces": ["acme"]}}
    project.save()
    make_approved(project, challenger="THOUGHT: Held out.\n\n```bash\ncat LICENSE\n```")
    earlier = export_of(project, {"formats": ["sft-messages"], "splits": {"val": 1.0}})
    for number in range(3):
        sample = make_approved(project, challenger=f"THOUGHT: {number}\n\n```bash\nls {number}\n```")
        answer = sample.duel.challenger
        set_history(sample.duel.prompt, [{"role": "user", "content": f"Task {'abc'[number]}."}])
        run = Run.objects.create(project=project, kind="challenger", state="succeeded")
        item = Item.objects.create(run=run, stage="challenger", key="1", state="done")
        call = Call.objects.create(project=project, run=run, item=item, endpoint_name="large", content_hash="0" * 64)
        answer.call = call
        answer.save()
    client = Client()
    client.force_login(user)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)

    def wait(run: dict[str, Any]) -> Any:
        drive(int(run["id"]))
        for _ in range(3):
            drive(int(run["id"]))
        return client.get(f"/api/v1/runs/{run['id']}").json()

    names: dict[str, Any] = {"api": Api(client), "wait": wait}
    for script in scripts():
        exec(script.replace("export/12/val", f"export/{earlier.pk}/val"), names)  # noqa: S102

    export = names["export"]
    assert export["counts"]["exported"] == 3
    assert {path.name for path in here.iterdir()} == {file["name"] for file in export["files"]}
    assert hub.repositories["acme/shell-agents"].commits
