"""Each figure of docs/measurements.md names its commit, and a figure that is older than its code is listed."""

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.stale import COMMIT, PAGE, ROOT, figures, main

TABLE = "# Page\n\n## Fast\n\nCode: `fast.py`, `folder`\n\n| what | measured | commit |\n| --- | --- | --- |\n{}\n"
ME = {f"GIT_{who}_{what}": "me" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder: Path, *words: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | ME
    return subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=True).stdout


def commit(folder: Path, name: str, text: str) -> str:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", name)
    return git(folder, "rev-parse", "HEAD")[:8]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    return folder


def test_every_figure_names_a_commit_and_code_that_exists() -> None:
    found = figures((ROOT / PAGE).read_text(encoding="utf-8"))
    assert len(found) > 90
    assert [figure.what for figure in found if not COMMIT.fullmatch(figure.commit)] == []
    assert [figure.what for figure in found if not figure.code] == []
    assert {path for figure in found for path in figure.code if not (ROOT / path).exists()} == set()


def test_a_figure_is_stale_once_a_tenth_of_its_code_has_changed(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    oldest = commit(repository, "fast.py", "1\n" * 40)
    old = commit(repository, "folder/part.py", "1\n" * 20)
    kept = commit(repository, "fast.py", "2\n" * 6 + "1\n" * 34)
    new = commit(repository, "fast.py", "2\n" * 7 + "1\n" * 33)
    commit(repository, "other.py", "1\n" * 100)
    rows = [("first", old), ("second", oldest), ("third", kept), ("fourth", new)]
    commit(repository, PAGE, TABLE.format("\n".join(f"| {what} | 5 ms | {at} |" for what, at in rows)))

    assert main(repository) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{oldest}   45% of the code is newer  second",
        f"{old}   12% of the code is newer  first",
        "2 of 4 figures are older than a tenth or more of the code that they depend on",
    ]


def test_a_change_that_was_taken_back_makes_no_figure_stale(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = commit(repository, "fast.py", "1\n")
    commit(repository, "fast.py", "2\n")
    commit(repository, "fast.py", "1\n")
    commit(repository, PAGE, TABLE.format(f"| first | 5 ms | {known} |"))

    assert main(repository) == 0
    assert capsys.readouterr().out.startswith("0 of 1 figures")


@pytest.mark.parametrize("named", ["", "4 ms", "HEAD", "00000000"])
def test_a_figure_without_a_commit_of_the_history_fails(
    repository: Path, capsys: pytest.CaptureFixture[str], named: str
) -> None:
    known = commit(repository, "fast.py", "1")
    commit(repository, PAGE, TABLE.format(f"| first | 5 ms | {named} |\n| second | 4 ms | {known} |"))

    assert main(repository) == 1
    assert f"no commit of the history: {named!r}, in the row 'first'" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["shallow", "begun anew", "without git"])
def test_without_a_complete_history_nothing_counts_as_checked(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    commit(repository, "fast.py", "1")
    commit(repository, PAGE, TABLE.format("| first | 5 ms | 00000000 |"))
    copy = repository if kind == "begun anew" else tmp_path / "copy"
    if kind == "shallow":
        git(tmp_path, "clone", "--quiet", "--depth", "1", repository.as_uri(), str(copy))
    elif kind == "without git":
        (copy / "docs").mkdir(parents=True)
        (copy / PAGE).write_text((repository / PAGE).read_text())

    assert main(copy) == 0
    assert "was not checked: this copy has no complete history" in capsys.readouterr().out
