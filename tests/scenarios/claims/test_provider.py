"""The axis `provider`: right claims fit, wrong ones do not, for bundles of every kind."""

import json
from pathlib import Path

import pytest

from curation import scenarios
from curation.llm.scripted.teacher import write_bundle
from curation.scenarios.bundles.document import Bundle, parse_bundle
from curation.scenarios.claims.evidence import BundleEvidence
from curation.scenarios.taxonomy.axes import shipped_taxonomy
from tests.factories import BUNDLE
from tests.sampled import one_of
from tests.scenarios.claims.seen import accepted

SHIPPED = sorted((Path(scenarios.__file__).parent / "shipped").glob("*.json"))
VALUES = shipped_taxonomy().axes["provider"].values
# A script that lists files of a folder, shows them and moves them on may be called a spool too.
EITHER = {"bakery-oven-faults": {"script", "spool"}}


def passing(bundle: Bundle) -> set[str]:
    return accepted(BundleEvidence(bundle), "provider")


def around(program: str, *files: tuple[str, str]) -> Bundle:
    fixtures = [{"path": "/usr/local/bin/todo", "mode": "755", "content": f"#!/bin/sh\n{program}"}]
    fixtures += [{"path": path, "content": text} for path, text in files]
    return parse_bundle({**BUNDLE, "name": "around", "fixtures": fixtures})


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_scenario_passes_as_its_own_kind_only(path: Path) -> None:
    bundle = parse_bundle(json.loads(path.read_text(encoding="utf-8")))
    assert passing(bundle) == EITHER.get(bundle.name, {bundle.axes["provider"]})


@pytest.mark.parametrize("provider", VALUES)
@pytest.mark.parametrize("task", one_of(4, shipped_taxonomy().axes["task"].values))
def test_what_the_scripted_teacher_writes_passes_as_its_own_kind_only(task: str, provider: str) -> None:
    for number, depth in enumerate(shipped_taxonomy().axes["doc_depth"].values):
        order = {"task": task, "provider": provider, "announcement": "motd", "doc_depth": depth, "difficulty": "2"}
        assert passing(parse_bundle(write_bundle(order, number))) == {provider}


@pytest.mark.parametrize(
    ("program", "files", "kinds"),
    [
        ("cat /srv/post/0001\n", [("/srv/post/0001", "From: ida\nSubject: frost\n\nCount the trees.\n")], {"mailbox"}),
        ("sed -n 1p /srv/jobs.txt\n", [("/srv/jobs.txt", "count\nsort\n")], {"script", "queue-file"}),
        ("# no fifo here\necho 'mkfifo is not used'\ncat /srv/order\n", [("/srv/order", "x\n")], {"script"}),
        ("cat /srv/Planfile\n", [("/srv/Planfile", "report: raw\n    count the lines\n")], {"make"}),
        ("ln -s /srv/target /srv/link\n", [], {"script", "make"}),
        ("mknod /var/line p\n", [], {"fifo"}),
    ],
)
def test_programs_of_other_hands(program: str, files: list[tuple[str, str]], kinds: set[str]) -> None:
    assert passing(around(program, *files)) == kinds


def test_without_a_program_nothing_is_called_right() -> None:
    bundle = parse_bundle({**BUNDLE, "name": "bare", "fixtures": [{"path": "/srv/queue", "content": "count\n"}]})
    assert passing(bundle) == {"queue-file", "spool", "mailbox"}
