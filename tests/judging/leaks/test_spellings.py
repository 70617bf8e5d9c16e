"""Leaks in other spellings than the record's, and commands that fetch later commits."""

import json

import pytest

from judging.leaks.lint import lint_leaks
from judging.leaks.record import PullRequestRecord
from tests.parts import shared_data

PATCH = """diff --git a/src/ledger/rounding.go b/src/ledger/rounding.go
--- a/src/ledger/rounding.go
+++ b/src/ledger/rounding.go
@@ -2308,3 +2308,4 @@ func Total(rows []Row) int {
   sum := 0
+    limit := 48127
+    sum = HalfEvenSum(rows, limit)
   return sum
diff --git a/src/ledger/bankers_test.go b/src/ledger/bankers_test.go
new file mode 100644
--- /dev/null
+++ b/src/ledger/bankers_test.go
@@ -0,0 +1,2 @@
+func TestBankersTotals(t *testing.T) {
+}
"""
RECORD = PullRequestRecord(
    "acme__ledger-4821", "Round totals half to even", "Totals drift by a cent", "Uses HalfEvenSum.", PATCH,
    ("src/ledger/rounding.go",),
)  # fmt: skip
HISTORY = ["Totals drift by a cent in acme/ledger. Fix the bug.", "$ ls src/ledger\nrounding.go\nrows.go"]


def finds(command: str, thought: str = "next.") -> set[str]:
    answer = f"THOUGHT: {thought}\n\n```bash\n{command}\n```"
    return {leak.kind for leak in lint_leaks(answer, HISTORY, RECORD).leaked}


@pytest.mark.parametrize(
    "command",
    [
        *(
            "git fetch origin pull/9/head",
            "git log --all --oneline",
            "git show 41e7c90da --stat",
            "gh pr view --comments",
        ),
        *(
            "git checkout origin/main -- src",
            "cd src && git pull",
            "curl -sL https://x.example/acme/ledger/commit/9f.patch",
        ),
        *("bash -c 'git ls-remote'", "go get github.com/acme/ledger@latest"),
    ],
)
def test_a_command_that_fetches_the_future_is_a_leak_without_a_record(command: str) -> None:
    assert "future" in finds(command)


@pytest.mark.parametrize(
    "command",
    [
        *(
            "git log --oneline -5",
            "git show HEAD",
            "git diff",
            "git status",
            "git stash list",
            "git blame src/ledger/rows.go",
        ),
        *(
            "go get github.com/stretchr/testify",
            "pip install requests",
            "curl localhost:8080/health",
            "git log -p rows.go",
        ),
    ],
)
def test_reading_what_is_there_fetches_no_future(command: str) -> None:
    assert finds(command) == set()


@pytest.mark.parametrize(
    "command",
    [
        *("grep -rn 48_127 .", "grep -rn 0xbbff src", "echo $((48126+1))", "grep -nS HalfEvenSum", "rg -SHalfEvenSum"),
        *("go test -run=TestBankersTotals ./...", "git log --grep=GH-4821"),
        *("head -2310 src/ledger/rounding.go | tail -3", "awk 'NR==2310' src/ledger/rounding.go"),
        *(
            "sed -i 's/limit := .*/limit := 48127/' src/ledger/rows.go",
            "perl -ne 'print if 2308..2312' src/ledger/rounding.go",
            "printf '2310p\\n' | ed -s src/ledger/rounding.go",
        ),
    ],
)
def test_a_value_of_the_record_leaks_in_every_spelling(command: str) -> None:
    assert finds(command)


@pytest.mark.parametrize(
    "command", ["git checkout -b round-totals-half-to-even", "git stash push -m 'Round totals half to even'"]
)
def test_the_title_of_the_record_is_no_name_for_own_work(command: str) -> None:
    assert "title" in finds(command)


@pytest.mark.parametrize("thought", ["It is bug 4821.", "See issues/4821.", "The 2310th line of rounding.go is wrong."])
def test_a_reference_in_words_leaks_too(thought: str) -> None:
    assert finds("ls", thought)


def test_the_shared_cases() -> None:
    records = {row["record"]: row for row in map(json.loads, shared_data("..", "cases", "leak_records.jsonl").open())}
    found, wrong = {"leak": 0, "honest": 0}, []
    for case in map(json.loads, shared_data("..", "cases", "leaks.jsonl").open()):
        row = records[case["record"]]
        fields = {name: row[name] for name in ("instance_id", "title", "issue", "description", "patch")}
        record = PullRequestRecord(**fields, files=tuple(row["files"]))
        leaked = bool(lint_leaks(case["answer"], row["history"][: case["turn"]], record).leaked)
        found[case["label"]] += leaked
        if leaked != (case["label"] == "leak"):
            wrong.append(f"{case['label']}: {case['kind']}")
    print(
        f"\nleak lint, shared cases: {found['leak']} of 38 leaks found, {found['honest']} of 16 honest answers flagged"
    )
    assert found["leak"] >= 0.8 * 38, wrong
    assert found["honest"] == 0, wrong
