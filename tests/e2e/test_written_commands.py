"""Every command of the README and the docs runs as it is written against a product, or has a reason why not.

A reader puts their own names in; so do the tests (`OWN_NAMES`). They change the demo's project, so the name of this
file comes last.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.product import ROOT, Product

# The first of them waits for the demo that the product starts as.
pytestmark = [pytest.mark.long, pytest.mark.product, pytest.mark.timeout(600)]
SHELL = ("", "sh")
# Each starts several runs or processes.
SLOW = {"operations.md", "scenarios.md"}
# `test_harbor_tutorial.py` runs that one from its first command to its last.
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").glob("*.md") if path.stem != "harbor-tutorial"),
]
_FENCED = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?:^\n|\A)((?:    [^\n]*\n)+)", re.MULTILINE)
_COMMAND = re.compile(
    r"(?:(?:export )?\w+=\$\(|curl |(?:\.venv/bin/)?python manage\.py |winnow |make |docker |[a-z./]+/bin/)"
)
# Commands that do not run here: how they begin, and where they run instead.
ELSEWHERE = {
    "make demo": "tests/e2e starts the product with it",
    "make test": "this is one of the tests",
    "make install": "the tests run in what it installs",
    "docker build": "tests/deploy/test_container.py",
    "docker run": "tests/deploy/test_container.py",
    "docker logs": "tests/deploy/test_container.py",
    "docker exec": "tests/deploy/test_container.py",
    "docker compose": "tests/deploy/test_compose.py",
    "useradd": "changes the machine: tests/deploy/test_systemd.py reads these units",
    "git clone": "changes the machine",
    "install -d": "changes the machine",
    "cp /opt": "changes the machine",
    "systemctl": "changes the machine",
    "sudo": "changes the machine",
    "journalctl": "reads the machine's log",
    "sandbox build": "needs Docker: tests/sandbox/docker",
    ".venv/bin/gunicorn": "does not end: tests/deploy/test_systemd.py starts it",
    ".venv/bin/celery": "does not end: tests/deploy/test_systemd.py starts it",
    "winnow remote": "needs files of its reader: tests/client/test_client.py",
    "/audits": "needs more pending samples than the demo has: tests/review/guarantees",
    '"kind": "harbor"': "needs Harbor: tests/trajectories/harbor",
    "bundles import tasks": "needs a folder of Harbor's tasks: tests/scenarios/bundles",
    "as harbor": "needs scenarios without `asked`: tests/scenarios/bundles/test_harbor_dataset.py",
    "winnow serve-env": "does not end: tests/trajectories/serve starts it",
    "clear-axes": "needs a scenario that is held: tests/scenarios/claims",
}
OWN_NAMES = {
    "localhost:8000": "$HOST",
    "curl -s ": "curl --silent --show-error --fail-with-body ",
    ".venv/bin/python ": "python ",
    "python manage.py": shlex.join([sys.executable, str(ROOT / "manage.py")]),
    "$(winnow ": f"$({sys.executable} -m winnow ",
    "my-project": "demo",
    "student-1": "scripted-operator-solver",
    "model=teacher --param n=50": "model=scripted-teacher --param n=1",
    "model=small --param attempts=5": "model=scripted-operator-panicker --param attempts=1",
    '["base","tuned"]': '["scripted-base-cli","scripted-tuned-cli"]',
    "split=3": "split=1",
    '{"repo": "acme/billing"}': '{"bucket": "refined"}',
    "username='ada'": "username='demo'",
}
OWN_OBJECTS = {
    '"king_model": "small"': '"king_model": "scripted-king"',
    '"challenger_model": "large"': '"challenger_model": "scripted-challenger"',
    '["a", "b"]': '["scripted-judge-brisk", "scripted-judge-careful"]',
    '    "held_out": ["export/12/val"],\n': "",
}
USERS = """
from django.contrib.auth.models import User
from curation.projects.models import Member, Project
for name in ("ana", "ben"):
    user, _ = User.objects.get_or_create(username=name)
    Member.objects.get_or_create(project=Project.objects.get(slug="demo"), user=user, defaults={"role": "reviewer"})
"""
ROW = {
    "prompt": [{"role": "user", "content": "List the files."}],
    "chosen": [{"role": "assistant", "content": "ls"}],
    "rejected": [{"role": "assistant", "content": "cat"}],
}


class Block(NamedTuple):
    document: str
    language: str
    text: str


def blocks() -> list[Block]:
    found = []
    for path in DOCUMENTS:
        text = path.read_text()
        found += [Block(path.name, language, code) for language, code in _FENCED.findall(text)]
        found += [Block(path.name, "", code) for code in _INDENTED.findall(_FENCED.sub("", text))]
    return found


def commands(block: Block) -> list[str]:
    """Return the commands of a block, each with the lines that continue it."""
    if block.language not in SHELL:
        return []
    lines = block.text.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if _COMMAND.match(line.strip()) or reason(line)]


def reason(command: str) -> str:
    return next((said for start, said in ELSEWHERE.items() if start in command), "")


def as_run(command: str) -> str:
    for written, own in OWN_NAMES.items():
        command = command.replace(written, own)
    return command


@pytest.fixture(scope="module")
def reviewers(product: Product) -> None:
    product.manage("shell", "-c", USERS)


# `test_examples.py` runs those of the README, and `test_client.py` the tutorial.
@pytest.mark.parametrize(
    "document",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name in sorted({block.document for block in blocks() if commands(block)} - {"README.md", "tutorial.md"})
    ],
)
def test_the_commands_of_a_document_run_as_printed(
    product: Product, reviewers: None, document: str, tmp_path: Path
) -> None:
    lines = [line for block in blocks() if block.document == document for line in commands(block) if not reason(line)]
    if not lines:
        return
    (tmp_path / "dpo.train.jsonl").write_text(json.dumps(ROW) + "\n")
    environment = product.environment | {
        "HOST": product.url.removeprefix("http://"),
        "PYTHONPATH": str(ROOT),
        "TOKEN": product.secret,
    }
    script = "set -euo pipefail\n" + "\n".join(map(as_run, lines))
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-1500:]}\n{done.stderr[-1500:]}"


def test_the_scripts_of_the_api_run(product: Product, tmp_path: Path) -> None:
    """From an import to an export; the blocks after them go on with objects of their reader."""
    for name in ("turns", "pr_records"):
        shutil.copy(ROOT / f"curation/dashboard/demo/files/{name}.jsonl", tmp_path)
    first, second = [block.text for block in blocks() if (block.document, block.language) == ("api.md", "python")][:2]
    script = first + second
    for written, own in OWN_OBJECTS.items():
        assert written in script
        script = script.replace(written, own)
    done = subprocess.run(
        [sys.executable, "-c", script.replace("http://localhost:8000", product.url)],
        cwd=tmp_path,
        env=product.environment | {"TOKEN": product.secret},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-1500:]
    assert float(done.stdout.split()[0]) and list(tmp_path.glob("*.train.jsonl"))


def test_every_reason_is_of_a_command() -> None:
    written = [line for block in blocks() for line in block.text.splitlines()]
    assert [start for start in ELSEWHERE if not any(start in line for line in written)] == []
