"""The three commands of the README, taken from the document and run against a running product."""

import json
import re
import subprocess
import sys

import pytest

from tests.product import ROOT, Product

pytestmark = [pytest.mark.long, pytest.mark.product]
BLOCK = re.compile(r"(?:^ {4}.*\n)+", re.MULTILINE)


def commands(document: str) -> str:
    """The three commands that sign in, list samples and start an export, as the document prints them."""
    blocks: list[str] = BLOCK.findall((ROOT / document).read_text())
    return next(block for block in blocks if "token create" in block)


def here(product: Product, text: str) -> str:
    """The text with the address of the running product in it."""
    assert "localhost:8000" in text or "8000" not in text
    return text.replace("localhost:8000", f"localhost:{product.port}")


def shell(product: Product, script: str) -> str:
    """`python` is this interpreter."""
    (product.data / "bin").mkdir(exist_ok=True)
    python = product.data / "bin" / "python"
    if not python.exists():
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
    environment = product.environment | {"PATH": f"{python.parent}:{product.environment['PATH']}"}
    done = subprocess.run(
        ["bash", "-eu", "-c", here(product, script)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_both_documents_print_the_same_commands() -> None:
    assert commands("README.md") == commands("docs/api.md")
    assert commands("README.md").count("curl") == 2


def test_the_three_commands_work_as_printed(product: Product) -> None:
    said = shell(product, commands("README.md"))

    decoder = json.JSONDecoder()
    samples, end = decoder.raw_decode(said)
    run, _ = decoder.raw_decode(said[end:].lstrip())
    assert 0 < len(samples["data"]) <= 2
    assert {row["bucket"] for row in samples["data"]} == {"refined"}
    assert run["kind"] == "export"
    assert product.wait(run)["state"] == "succeeded"
    export = product.get(f"/exports/{run['result']['export']}")
    approved = product.get("/projects/demo/samples", status="approved", count="true", limit=1)["total"]
    assert {file["format"] for file in export["files"] if file["format"]} >= {"sft-messages", "dpo"}
    rows = sum(file["rows"] for file in export["files"] if file["format"] == "sft-messages")
    # Operators of both rounds do some tasks in the same way.
    assert rows + export["counts"]["excluded"].get("duplicate", 0) == approved
