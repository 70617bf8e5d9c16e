"""The script of docs/tutorial.md and the notebooks, run as they are against a running product."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from curation.dashboard.demo.builder import FILES
from tests.parts import shared_data
from tests.product import ROOT, Product

# The first of them waits for the demo that the product starts as.
pytestmark = [pytest.mark.long, pytest.mark.product, pytest.mark.timeout(600)]
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def tutorial() -> str:
    """The script of docs/tutorial.md: its blocks, in order."""
    return "\n".join(PYTHON.findall((ROOT / "docs/tutorial.md").read_text()))


def notebook(name: str) -> str:
    """The code of its cells, in order."""
    cells = json.loads((ROOT / f"docs/notebooks/{name}.ipynb").read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def run(product: Product, script: str, folder: Path, **environment: str) -> str:
    """Run a script as a user with a token, beside an empty folder; return its output."""
    (folder / "script.py").write_text(script)
    given = {"WINNOW_URL": product.url, "WINNOW_TOKEN": product.secret, **environment}
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env=product.environment | {"PYTHONPATH": str(ROOT)} | given,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("sessions", [pytest.param("real", marks=pytest.mark.slow), "written by hand"])
def test_the_tutorial_runs_as_printed(product: Product, tmp_path: Path, sessions: str) -> None:
    """On recorded sessions of agents where they are beside the clone, and on the files that a clone has."""
    if sessions == "real":
        turns, records = shared_data("turns", "swe_agent_nebius.jsonl"), shared_data("turns", "pr_records.jsonl")
    else:
        turns, records = FILES / "turns.jsonl", FILES / "pr_records.jsonl"
    instances = {json.loads(line)["instance_id"] for line in records.read_text().splitlines()}

    said = run(product, tutorial(), tmp_path, TURNS=str(turns), RECORDS=str(records))

    counts = re.search(r"^turns (\d+) records (\d+)$", said, re.MULTILINE)
    assert counts and int(counts[1]) >= 40 and int(counts[2]) >= 5
    assert re.search(r"^margin -?\d", said, re.MULTILINE) and "succeeded" in said and "approve" in said
    written = dict(re.findall(r"^(\S+) rows (\d+)$", said, re.MULTILINE))
    rows = (tmp_path / "exported/sft-messages.train.jsonl").read_text().splitlines()
    assert len(rows) == int(written["sft-messages.train.jsonl"]) > 0 and f"num_rows: {len(rows)}" in said
    assert {json.loads(row)["instance_id"] for row in rows} <= instances


def test_the_notebooks_run_cell_by_cell(product: Product, tmp_path: Path) -> None:
    names = {path.stem for path in (ROOT / "docs/notebooks").glob("*.ipynb")}
    assert names == set(re.findall(r"\(notebooks/(\w+)\.ipynb\)", (ROOT / "docs/client.md").read_text()))

    dueled = run(product, notebook("duel") + "\nprint('project', project.slug)", tmp_path)
    margin = float(re.findall(r"^margin (\S+) lower bound", dueled, re.MULTILINE)[0])
    assert -100 <= margin <= 100 and dueled.count("parsed") == 3
    slug = dueled.split()[-1]

    triaged = run(product, notebook("triage") + "\nprint(rows.num_rows)", tmp_path, WINNOW_PROJECT=slug)
    approved = int(re.findall(r"^(\d+) samples are approved", triaged, re.MULTILINE)[0])
    assert approved > 0 and int(triaged.split()[-1]) == approved

    evaluated = run(product, notebook("evaluate"), tmp_path)
    assert re.search(r"^base-cli n 6 ", evaluated, re.MULTILINE) and re.search(
        r"^tuned-cli n 6 ", evaluated, re.MULTILINE
    )
    assert "6 rows, 6 tasks;" in evaluated and re.search(r"^exact ", evaluated, re.MULTILINE)
