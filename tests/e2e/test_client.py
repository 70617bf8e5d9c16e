"""The scripts of docs/client.md and the notebooks, run as they are against a running product."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.product import ROOT, Product

# The first of them waits for the demo that the product starts as.
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def tutorial() -> str:
    """The script of docs/client.md: its blocks, in order."""
    return "\n".join(PYTHON.findall((ROOT / "docs/client.md").read_text()))


def notebook(name: str) -> str:
    """The code of its cells, in order."""
    cells = json.loads((ROOT / f"docs/notebooks/{name}.ipynb").read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def run(product: Product, script: str, folder: Path, **environment: str) -> str:
    """Run a script as somebody with a token would, beside an empty folder; return what it printed."""
    (folder / "script.py").write_text(script)
    given = {"WINNOW_URL": product.url, "WINNOW_TOKEN": product.token("read,review,run,export,admin"), **environment}
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


def test_the_tutorial_runs_as_printed(product: Product, tmp_path: Path) -> None:
    said = run(product, tutorial(), tmp_path)
    assert "approve" in said and "num_rows: 4" in said
    assert len((tmp_path / "exported/sft-messages.train.jsonl").read_text().splitlines()) == 4


def test_the_notebooks_run_cell_by_cell(product: Product, tmp_path: Path) -> None:
    names = {path.stem for path in (ROOT / "docs/notebooks").glob("*.ipynb")}
    assert names == set(re.findall(r"\(notebooks/(\w+)\.ipynb\)", (ROOT / "docs/client.md").read_text()))

    dueled = run(product, notebook("duel") + "\nprint('project', project.id)", tmp_path)
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
