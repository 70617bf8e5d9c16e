"""Two endpoints accept connections and never answer. Only the runs that call them wait."""

import time
import uuid
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from curation.dashboard.demo.builder import SHIPPED
from tests.model_server import ModelServer
from tests.product import Product

pytestmark = [pytest.mark.slow, pytest.mark.bubblewrap]
# A shard of model calls lasts two minutes: what waits for one does not end within this.
SECONDS = 60.0
SILENT = ("silent-a", "silent-b")
TURNS, SLOTS = 8, 64


class Desk:
    """A project of its own in the running product; `silent` are runs that will not end by themselves."""

    def __init__(self, product: Product, server: ModelServer) -> None:
        self.product, self.slug = product, f"silent-{uuid.uuid4().hex[:6]}"
        self.silent: list[dict[str, Any]] = []
        self.post("/projects", {"slug": self.slug, "name": "Silent"})
        for name in (*SILENT, "king", "operator"):
            values = {"model": f"openai/{name}", "api_base": server.api_base, "max_concurrency": SLOTS}
            self.post(f"/projects/{self.slug}/models", {"name": name, **values})

    def post(self, path: str, body: Any = None) -> dict[str, Any]:
        answer = self.product.api.post(path, json=body)
        assert answer.status_code < 300, f"{path}: {answer.status_code} {answer.text[:500]}"
        found: dict[str, Any] = answer.json()
        return found

    def run(self, kind: str, **params: Any) -> dict[str, Any]:
        return self.post(f"/projects/{self.slug}/runs", {"kind": kind, "params": params})

    def upload(self, kind: str, rows: list[bytes]) -> dict[str, Any]:
        files = {"file": (f"{kind}.jsonl", b"\n".join(rows))}
        answer = self.product.api.post(f"/projects/{self.slug}/imports", data={"kind": kind}, files=files)
        assert answer.status_code < 300, answer.text[:500]
        found: dict[str, Any] = answer.json()
        return found

    def turns(self, source: str) -> dict[str, Any]:
        """Import some turns of an agent."""
        rows = [
            {
                "instance_id": f"{source}__{number}",
                "messages": [
                    {"role": "user", "content": f"Task {number} of {source}: list the files."},
                    {"role": "assistant", "content": "THOUGHT: I look.\n\n```bash\nls -la\n```"},
                ],
            }
            for number in range(TURNS)
        ]
        return self.upload("turns", [orjson.dumps(row) for row in rows])

    def succeeded(self, *runs: dict[str, Any]) -> None:
        for run in runs:
            ended = self.product.wait(run, seconds=SECONDS)
            assert (ended["state"], ended["items"]["failed"]) == ("succeeded", 0), ended


@pytest.fixture
def desk(product: Product, model_server: ModelServer) -> Iterator[Desk]:
    for name in SILENT:
        model_server.behave(name, hang=1.0)
    made = Desk(product, model_server)
    yield made
    for run in made.silent:
        made.post(f"/runs/{run['id']}/cancel")


@pytest.mark.timeout(400)
def test_only_the_runs_that_call_them_wait(desk: Desk, model_server: ModelServer) -> None:
    bundles = [orjson.dumps(orjson.loads(path.read_bytes())) for path in sorted(SHIPPED.glob("*.json"))[:2]]
    desk.succeeded(desk.upload("scenarios", bundles), desk.turns("before"))
    desk.succeeded(desk.run("gate", repeats=1))
    for name in SILENT:
        # More items than a shard has, so that each run sends messages for several.
        desk.silent += [
            desk.run("author", model=name, n=1200, dry_run=True),
            desk.run("rollout", model=name, samples=64),
        ]
    until = time.monotonic() + 30
    while any(model_server.counts(name).hung < SLOTS for name in SILENT):
        assert time.monotonic() < until, [model_server.counts(name).hung for name in SILENT]
        time.sleep(0.2)

    started = time.monotonic()
    admitted = [row["name"] for row in desk.product.rows(f"/projects/{desk.slug}/scenarios", status="admitted")]
    desk.succeeded(
        desk.turns("after"),
        desk.run("export", recipe={"formats": ["sft-messages"], "filter": {}}),
        desk.run("gate", repeats=1, filter={"name": admitted}),
        desk.run("king", model="king"),
        desk.run("rollout", model="operator", samples=2),
    )
    desk.succeeded(desk.run("replay"))
    print(f"{time.monotonic() - started:.1f} s")
    for run in desk.silent:
        assert desk.product.get(f"/runs/{run['id']}")["state"] in ("queued", "running")
