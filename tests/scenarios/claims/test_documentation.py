"""The axis `doc_depth`: programs are called in a real sandbox, and their output is compared with the claim."""

import base64
import bz2
import gzip
import lzma
from collections.abc import Callable

import pytest

from curation.scenarios.bundles.document import parse_bundle
from curation.scenarios.claims.check import check_axes
from curation.scenarios.claims.evidence import FITS, BundleEvidence
from curation.scenarios.claims.provider import check_documentation
from sandbox.choose import choose_backend
from sandbox.gate.documentation import Documentation
from sandbox.protocol import SandboxBackend
from tests.factories import BUNDLE
from tests.scenarios.bundles.test_shipped import bundle_named
from tests.scenarios.claims.seen import accepted, evidence_of

pytestmark = pytest.mark.bubblewrap

PAGE = "TODO(1)\n\nNAME\n    todo - work\n\nSYNOPSIS\n    todo list\n"
HELP = "--help) echo 'usage: todo list' ;;"
PROGRAMS = {
    f'case "$1" in {HELP} *) exit 2 ;; esac': {"help"},
    'case "$1" in list) echo x ;; *) echo "usage: todo list" >&2; exit 2 ;; esac': {"usage-error"},
    "echo 'write hello to greeting.txt'": set(),
    'echo "todo: I know no $1"; exit 1': set(),
    'case "$1" in help) echo "todo: nothing about $2" ;; esac': {"help"},
    'case "$1:$2" in help:) echo "see todo help work" ;; help:work) echo "todo list" ;; *) exit 1 ;; esac': {"layered"},
    'case "$1:$2" in --help:) echo "topics: work" ;; --help:* | help:work) exit 1 ;; esac': {"help"},
    'case "$1" in --help) echo "todo topic NAME: list" ;; topic) [ "$2" = list ] && echo "shows all" ;; esac': {
        "layered"
    },
    'case "$1" in --manual) cat /opt/todo.1 ;; *) exit 2 ;; esac': {"man-page"},
}


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> SandboxBackend:
    return choose_backend("bubblewrap", folder=tmp_path_factory.mktemp("sandbox"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_passes_as_what_it_does(program: str, rooms: SandboxBackend) -> None:
    fixtures = [{"path": "/usr/local/bin/todo", "mode": "755", "content": f"#!/bin/sh\n{program}\n"}]
    fixtures += [{"path": "/opt/todo.1", "content": PAGE}] if "man-page" in PROGRAMS[program] else []
    bundle = parse_bundle({**BUNDLE, "name": "todo", "fixtures": fixtures, "reference_solution": "ls\nexit"})
    assert accepted(evidence_of(bundle, rooms), "doc_depth") == PROGRAMS[program]


@pytest.mark.parametrize(
    "name", ["museum-crate", "choir-roster", "orchard-frost", "press-void-proofs", "vault-no-card"]
)
def test_a_shipped_scenario_is_what_it_claims(name: str, rooms: SandboxBackend) -> None:
    seen = evidence_of(bundle_named(name), rooms)
    assert {check.axis: check.finding for check in check_axes(seen)} == {
        **dict.fromkeys(("task", "provider", "announcement", "doc_depth"), "fits"),
        **({"task": "unchecked"} if name == "vault-no-card" else {}),
        "difficulty": "unchecked",
    }
    assert accepted(seen, "doc_depth") == {seen.bundle.axes["doc_depth"]}


@pytest.mark.parametrize(
    "source",
    [
        '.TH TODO 1 "2026" "Desk"\n.SH NAME\ntodo \\- lists the work\n',
        ".Dd June 1, 2026\n.Dt TODO 1\n.Os\n.Sh NAME\n.Nm todo\n.Nd lists the work\n",
        ".SH NAME\ntodo \\- lists the work\n",
        "TODO(1)\n\nN\bNA\bAM\bME\bE\n  todo - lists the work\n",
        "TODO(1)\n\n\x1b[1mNAME\x1b[0m\n  todo - lists the work\n",
    ],
)
@pytest.mark.parametrize(
    ("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_the_source_of_a_page_and_what_man_prints_are_pages(
    source: str, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    content = pack(source.encode())
    path = f"/usr/local/share/man/man1/todo.1{ending}"
    fixture = {"path": path, "base64": base64.b64encode(content).decode()}
    bundle = parse_bundle({**BUNDLE, "name": "todo", "fixtures": [fixture], "reference_solution": "man todo\nexit"})
    assert check_documentation("man-page", BundleEvidence(bundle, documentation=Documentation())) == FITS
