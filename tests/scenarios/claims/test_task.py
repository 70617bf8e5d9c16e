"""The axis `task`: the reference's changes, against every task that could be claimed."""

import pytest

from curation.llm.scripted.teacher import write_bundle
from curation.scenarios.bundles.document import parse_bundle
from curation.scenarios.claims.evidence import BundleEvidence
from sandbox.gate.state import PathEntry, StateChange
from tests.factories import BUNDLE
from tests.scenarios.claims.seen import accepted, check_claim

Edits = dict[str, str | None]
TABLE, OTHER = PathEntry("file", data=b"crane 4\nramp 7\n"), PathEntry("file", data=b"crane 9\nramp 7\n")
SETTINGS = PathEntry("file", data=b"[crane]\nlimit = 10\n")
KINDS = {
    "made": StateChange(None, TABLE),
    "edited": StateChange(TABLE, OTHER),
    "config": StateChange(SETTINGS, PathEntry("file", data=b"[crane]\nlimit = 30\n")),
    "removed": StateChange(TABLE, None),
    "mode": StateChange(TABLE, PathEntry("file", 0o400, TABLE.data)),
    "packed": StateChange(None, PathEntry("file", data=b"\x1f\x8b\x08\0\0")),
    "folder": StateChange(None, PathEntry("folder", 0o755)),
}


def seen(task: str, **kinds: str) -> BundleEvidence:
    """The scripted teacher's bundle of a task, with changes as `name="kind"` below /srv/depot."""
    order = {"task": task, "provider": "script", "announcement": "motd", "doc_depth": "help", "difficulty": "1"}
    changes = {f"/srv/depot/{name.replace('_', '.')}": KINDS[kind] for name, kind in kinds.items()}
    return BundleEvidence(parse_bundle(write_bundle(order, 0)), changes=changes)


@pytest.mark.parametrize(
    ("task", "kinds", "passing"),
    [
        ("file-edit", {"list_txt": "edited"}, {"file-edit"}),
        ("text-transform", {"stock_txt": "made"}, {"text-transform", "file-edit"}),
        ("search-and-report", {"found_txt": "made"}, {"search-and-report", "text-transform", "file-edit"}),
        ("archive", {"old_tar_gz": "packed"}, {"archive"}),
        (
            "archive",
            {"old_tar_gz": "packed", "1_sheet": "removed", "2_sheet": "removed"},
            {"archive", "cleanup", "multi-step"},
        ),
        ("permissions", {"crane_key": "mode", "run_sh": "mode"}, {"permissions"}),
        ("config-change", {"app_conf": "config"}, {"config-change", "file-edit"}),
        ("log-analysis", {"fails": "made"}, {"log-analysis", "text-transform", "file-edit"}),
        ("cleanup", {"draft": "removed", "empty": "removed"}, {"cleanup"}),
        ("multi-step", {"count": "made", "sign": "made", "out": "folder"}, {"multi-step", "text-transform"}),
        ("empty-queue", {}, {"empty-queue"}),
        ("blocked", {}, {"blocked"}),
    ],
)
def test_the_right_task_passes_and_others_only_where_they_look_alike(
    task: str, kinds: dict[str, str], passing: set[str]
) -> None:
    assert accepted(seen(task, **kinds), "task") == passing


def test_one_small_bundle_is_no_other_task() -> None:
    """The bundle that six combinations of axes once made six admitted scenarios of."""
    bundle = parse_bundle({**BUNDLE, "name": "greeting"})
    evidence = BundleEvidence(
        bundle, changes={"/home/agent/greeting.txt": StateChange(None, PathEntry("file", data=b"hello world\n"))}
    )
    assert accepted(evidence, "task") == {"file-edit"}
    assert accepted(evidence, "provider") == {"script"}
    assert accepted(evidence, "announcement") == {"motd"}


def test_a_reason_names_what_the_reference_did() -> None:
    check = check_claim(seen("file-edit", list_txt="edited"), "task", "cleanup")
    assert check.reason == "something is to be removed; the reference changes /srv/depot/list.txt"


def test_what_was_not_seen_is_unchecked() -> None:
    bundle = parse_bundle({**BUNDLE, "name": "greeting"})
    assert {check_claim(BundleEvidence(bundle), axis, str(value)).finding for axis, value in bundle.axes.items()} == {
        "fits",
        "unchecked",
    }
    assert check_claim(BundleEvidence(bundle), "task", "file-edit").finding == "unchecked"
    assert check_claim(BundleEvidence(bundle), "difficulty", "1").finding == "unchecked"
    assert check_claim(BundleEvidence(bundle), "task", "our own").finding == "unchecked"
    assert check_claim(BundleEvidence(bundle), "season", "spring").finding == "unchecked"
