"""The figures of docs/measurements.md whose code has largely changed since the commit that measured them.

    python -m benchmarks.stale

`Code:` under a heading of the page names the paths that the section's figures depend on; the last column of each table
is the commit. Rows are listed where a tenth or more of that code is newer, the most outdated first. Exits with 1 where
a row names no commit of the history; a stale row is only listed.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = "docs/measurements.md"
COMMIT = re.compile(r"[0-9a-f]{8}")
STALE = 0.1
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@dataclass(frozen=True, slots=True)
class Figure:
    what: str
    commit: str
    code: tuple[str, ...]


def figures(page: str) -> list[Figure]:
    """Return the rows of all tables, each with the paths of its section."""
    found: list[Figure] = []
    code: tuple[str, ...] = ()
    for line, below in pairwise([*page.splitlines(), ""]):
        if line.startswith("#"):
            code = ()
        elif line.startswith("Code:"):
            code = tuple(re.findall(r"`([^`]+)`", line))
        elif line.startswith("|") and not line.startswith("| ---") and not below.startswith("| ---"):
            cells = [cell.strip() for cell in line.strip().removesuffix("|").split("|")]
            found.append(Figure(cells[1], cells[-1], code))
    return found


def main(root: Path = ROOT) -> int:
    known = figures((root / PAGE).read_text(encoding="utf-8"))
    lost = [figure for figure in known if not _in_history(root, figure.commit)]
    is_shallow = _git(root, "rev-parse", "--is-shallow-repository").stdout != "false\n"
    if not (root / ".git").exists() or is_shallow or lost == known:
        print("Whether figures are older than their code was not checked: this copy has no complete history.")
        return 0
    for figure in lost:
        print(f"no commit of the history: {figure.commit!r}, in the row {figure.what!r}")
    newer = [(_newer(root, figure.commit, figure.code), figure) for figure in known if figure not in lost]
    stale = sorted([found for found in newer if found[0] >= STALE], key=lambda found: -found[0])
    for share, figure in stale:
        print(f"{figure.commit}  {share:4.0%} of the code is newer  {figure.what[:80]}")
    print(f"{len(stale)} of {len(known)} figures are older than a tenth or more of the code that they depend on")
    return int(bool(lost))


@cache
def _in_history(root: Path, commit: str) -> bool:
    return bool(COMMIT.fullmatch(commit)) and not _git(root, "merge-base", "--is-ancestor", commit, "HEAD").returncode


@cache
def _newer(root: Path, commit: str, code: tuple[str, ...]) -> float:
    """Return the share of the lines of the code, 0 to 1, that changed between the commit and today, as a net change."""
    return min(1.0, _changed_lines(root, commit, code) / max(1, _changed_lines(root, EMPTY_TREE, code)))


@cache
def _changed_lines(root: Path, since: str, code: tuple[str, ...]) -> int:
    """Count the lines that were added or removed, whichever are more; those of binary files do not count."""
    lines = _git(root, "diff", "--numstat", since, "HEAD", "--", *code).stdout.splitlines()
    counts = [line.split("\t")[:2] for line in lines if not line.startswith("-")]
    return max(sum(int(added) for added, _ in counts), sum(int(removed) for _, removed in counts))


def _git(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
