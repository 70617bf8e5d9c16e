"""Whether a record belongs to a trajectory: the real ones do, swapped ones do not."""

from dataclasses import replace

import pytest

from judging.leaks.doubt import doubt_about
from judging.leaks.record import PullRequestRecord
from tests.judging.leaks.test_lint import make_record
from tests.judging.turns import Turn, read_turns


def last_turns() -> dict[str, Turn]:
    return {turn.record.instance_id: turn for turn in read_turns()}


def doubt(record: PullRequestRecord, *shown: str, repo: str = "", trajectory_repo: str = "") -> str:
    return doubt_about(record, repo=repo, trajectory_repo=trajectory_repo, shown=shown)


def test_real_records_belong_to_their_trajectories_and_to_no_other() -> None:
    turns = last_turns()
    assert len(turns) == 6
    for name, turn in turns.items():
        for other, theirs in turns.items():
            found = doubt(theirs.record, *turn.history, turn.answer)
            assert bool(found) == (name != other), (name, other, found)


def test_a_record_of_another_repository_is_doubtful_whatever_it_changes() -> None:
    shown = "cat gears/client.py"
    assert doubt(make_record(), shown, repo="acme/gears", trajectory_repo="Acme/Gears") == ""
    assert doubt(make_record(), shown, repo="gears", trajectory_repo="acme/gears") == ""
    assert "other/wheels" in doubt(make_record(), shown, repo="other/wheels", trajectory_repo="acme/gears")
    assert "fork/gears" in doubt(make_record(), shown, repo="fork/gears", trajectory_repo="acme/gears")


@pytest.mark.parametrize(
    ("shown", "is_doubtful"),
    [
        ("open gears/client.py", False),
        ("ls\ngears\nsetup.py", False),
        ("class GearClient is slow", False),
        ("send_packet fails", False),
        ("the client is slow; see src/main.py and tests", True),
        ("nothing of it", True),
    ],
)
def test_one_file_folder_or_identifier_of_the_patch_is_enough(shown: str, is_doubtful: bool) -> None:
    assert bool(doubt(make_record(), shown)) is is_doubtful


def test_a_record_without_a_patch_has_nothing_to_compare() -> None:
    assert doubt(replace(make_record(patch=""), files=()), "nothing of it") == ""
