"""The two passes of `.ci/run`: what one leaves out, the other runs."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PASS = re.compile(r'-m "not \((?P<marks>[^)]*)\)"(?P<rest>(?:[^\n]*\\\n)*[^\n]*)')
# In no pass: `make soak` runs them.
SLOW = "slow"


def passes() -> list[tuple[set[str], list[Path]]]:
    """The marks and the files that each pass leaves out."""
    found = []
    for one in PASS.finditer((ROOT / ".ci/run").read_text()):
        ignored = [ROOT / path for path in re.findall(r"--ignore (\S+)", one["rest"])]
        files = [file for path in ignored for file in ([path] if path.is_file() else path.rglob("*.py"))]
        found.append((set(one["marks"].split(" or ")) - {SLOW}, files))
    return found


def test_no_mark_is_left_out_of_both() -> None:
    (first, _), (second, _) = passes()
    assert first and second
    assert not first & second


def test_a_file_that_one_pass_leaves_out_has_no_mark_that_the_other_leaves_out() -> None:
    (first_marks, first_files), (second_marks, second_files) = passes()
    assert first_files
    lost = [
        f"{file.relative_to(ROOT)}: {mark}"
        for files, marks in ((first_files, second_marks), (second_files, first_marks))
        for file in files
        for mark in sorted(marks)
        if re.search(rf"mark\.{mark}\b", file.read_text())
    ]
    assert lost == []
