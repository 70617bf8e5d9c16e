"""docs/harbor-tutorial.md from its first command to its last, with a scripted model that half of the time does nothing.

Harbor's trials are sandboxes here; a long test runs them in the real Harbor with Docker.
"""

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.parts import HARBOR_IMAGE, harbor
from tests.product import ROOT, Product
from tests.serving import serving, url_of

pytestmark = [pytest.mark.long, pytest.mark.product]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LOOK, WORK = (
    "cat /app/orders.csv",
    "awk -F, '{t[$1] += $2} END {for (c in t) print c \",\" t[c]}' /app/orders.csv | sort > /app/totals.csv",
)


class Model(BaseHTTPRequestHandler):
    """Answers as terminus-2 asks. `tuned` always does the work; every other session of `base` only looks again."""

    sessions: Iterator[int]

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_first = not any(message["role"] == "assistant" for message in asked["messages"])
        typed = [LOOK, WORK if "tuned" in asked["model"] or next(self.sessions) % 2 else LOOK] if is_first else []
        commands = [{"keystrokes": f"{line}\n", "duration": 0.5} for line in typed]
        said = {"analysis": "Orders.", "plan": "Sum them.", "commands": commands, "task_complete": not is_first}
        choice = {"index": 0, "message": {"role": "assistant", "content": json.dumps(said)}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
        answer = {"id": "a", "object": "chat.completion", "created": 1, "model": asked["model"], "choices": [choice]}
        body = json.dumps({**answer, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def read_through(product: Product, folder: Path, seconds: int) -> str:
    """Run the commands, then the script, in a folder, as a reader with a model of their own; return the output."""
    blocks = BLOCK.findall((ROOT / "docs/harbor-tutorial.md").read_text())
    shell, script = ("\n".join(text for language, text in blocks if language == name) for name in ("sh", "python"))
    with serving(Model, sessions=itertools.count()) as server:
        own = {
            "http://localhost:8000": product.url,
            "$(winnow ": f"$({sys.executable} -m winnow ",
            "MODEL=openai/qwen3-coder MODEL_URL=http://127.0.0.1:8001/v1": (
                f"MODEL=openai/base TUNED_MODEL=openai/tuned MODEL_URL={url_of(server)}/v1"
            ),
            "FROM ubuntu:24.04": f"FROM {HARBOR_IMAGE}",
        }
        for written, mine in own.items():
            assert written in shell, written
            shell = shell.replace(written, mine)
        (folder / "script.py").write_text(script)
        done = subprocess.run(
            ["bash", "-c", f"set -euo pipefail\n{shell}\n{sys.executable} script.py"],
            cwd=folder,
            env=product.environment | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def check(said: str, folder: Path) -> None:
    gated = dict(re.findall(r"^gate (\S+) (\S+)$", said, re.MULTILINE))
    assert gated == {"acme/lines": "rejected", "acme/totals": "admitted"}
    assert sorted(re.findall(r"^trial \S+ (\S+) ", said, re.MULTILINE)) == ["failed", "failed", "solved", "solved"]
    assert said.count("approved True") == 2
    rows = dict(re.findall(r"^file (\S+) rows (\d+)$", said, re.MULTILINE))
    pairs = [json.loads(line) for line in (folder / "exported/dpo.train.jsonl").read_text().splitlines()]
    assert len(pairs) == int(rows["dpo.train.jsonl"]) > 0 and int(rows["sft-messages.train.jsonl"]) > 0
    assert "awk" in json.dumps(pairs[0]["chosen"]) and "awk" not in json.dumps(pairs[0]["rejected"])
    assert re.search(r"^agent tuned solves 1\.0 of 1 ", said, re.MULTILINE)
    assert re.search(r"^agent base solves 0\.5 of 1 compared .*not known", said, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.timeout(900)
def test_the_tutorial_of_harbor_runs_as_printed(product: Product, tmp_path: Path) -> None:
    check(read_through(product, tmp_path, seconds=600), tmp_path)


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.timeout(1800)
def test_it_runs_with_the_real_harbor(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    product = Product(tmp_path_factory.mktemp("harbor"))
    product.environment["HARBOR_COMMAND"] = harbor()
    try:
        product.start()
        product.wait_for_line("Winnow is ready")
        check(read_through(product, tmp_path, seconds=1200), tmp_path)
    finally:
        product.stop()
