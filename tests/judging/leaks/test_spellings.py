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


def finds(command: str, thought: str = "next.", *, after: str = "") -> set[str]:
    answer = f"THOUGHT: {thought}\n\n```bash\n{command}\n```"
    return {leak.kind for leak in lint_leaks(answer, [*HISTORY, after], RECORD).leaked}


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
            "curl -s https://unpkg.com/@acme/rounding@5/dist/index.js",
        ),
        *("bash -c 'git ls-remote'", "go get github.com/acme/ledger@latest"),
        *("timeout 30 git fetch", "(cd src; git pull)", "if git fetch; then ls; fi", "cat .git/FETCH_HEAD"),
        *(
            "git log HEAD..main",
            "git show main:src/ledger/rows.go",
            "git diff v1.4.0 v1.4.1",
            "git submodule update --remote",
        ),
        *("git cat-file --batch-all-objects --batch-check", "git config remote.o.fetch '+refs/pull/*/head:refs/x/*'"),
        *("pip index versions ledger", "uvx ledger@latest", "helm pull acme/ledger"),
    ],
)
def test_a_command_that_fetches_the_future_is_a_leak_without_a_record(command: str) -> None:
    assert "future" in finds(command)


@pytest.mark.parametrize(
    "command",
    [
        *("git log --oneline -5", "git show HEAD", "git diff", "git status", "git stash list"),
        *("git blame src/ledger/rows.go", "git log v1.2.0..HEAD --oneline", "git merge-base HEAD HEAD~3"),
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


@pytest.mark.parametrize(
    "opened",
    ["$ sed -n '1,60p' src/ledger/rounding.go", "$ head -60 src/ledger/rounding.go"],
)
def test_a_file_of_which_the_beginning_was_read_gives_no_lines_far_below(opened: str) -> None:
    assert "line" in finds("sed -n '2306,2313p' src/ledger/rounding.go", after=opened)
    assert "line" in finds(
        "ls", "The two thousand three hundred and twelfth line of rounding.go is wrong.", after=opened
    )


@pytest.mark.parametrize(
    "opened",
    [
        "$ cat src/ledger/rounding.go",
        "$ sed -n '2240,2300p' src/ledger/rounding.go",
        "$ tail -60 src/ledger/rounding.go",
    ],
)
def test_a_file_that_was_read_near_the_change_gives_its_lines(opened: str) -> None:
    assert finds("sed -n '2306,2313p' src/ledger/rounding.go", after=opened) == set()


def test_a_plain_word_that_the_patch_has_as_a_variable_of_a_function_is_no_leak() -> None:
    lines = "@@ -7,2 +7,3 @@\n+    const weight = heavy(route)\n+export const gravity = 3\n"
    patch = f"--- a/src/rank.ts\n+++ b/src/rank.ts\n{lines}"
    record = PullRequestRecord("halcyon__waypoint-1937", "Rank routes", "Routes are ranked wrongly.", "", patch, ())

    def finds_word(answer: str) -> bool:
        return bool(lint_leaks(f"THOUGHT: {answer}\n\n```bash\nls\n```", ["Routes are ranked wrongly."], record).leaked)

    assert not finds_word("A helper gives each segment a `weight`.")
    assert finds_word("A helper has its `gravity`.")


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


MODULE = """--- a/harbor/ledger.py
+++ b/harbor/ledger.py
@@ -212,4 +212,4 @@ class TickLedger:
-        self._entries.append((tick, slope))
+        self._entries.append((tick, clip_slope(slope)))
--- /dev/null
+++ b/harbor/smear.py
@@ -0,0 +1,2 @@
+def clip_slope(slope):
+    raise ArithmeticError("drifted")
"""
TICKS = PullRequestRecord(
    "tidegauge__harbor-3187", "Clip slopes", "", "Closes #3154.", MODULE, ("harbor/ledger.py", "harbor/smear.py")
)
SHOWN = ["A slope is wrong near an epoch.", "$ grep -rn 'class TickLedger'\nharbor/ledger.py:187:class TickLedger:\n"]
VIEW = """<function=open_file>
<parameter=path>harbor/ledger.py</parameter>
<parameter={}>{}</parameter>
</function>"""


def flags(answer: str) -> set[str]:
    return {leak.kind for leak in lint_leaks(answer, SHOWN, TICKS).leaked}


def said(command: str, thought: str = "next.") -> str:
    return f"THOUGHT: {thought}\n\n```bash\n{command}\n```"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        # a few lines that do not follow from a line that was shown
        (said("awk 'NR>=211 && NR<=217' harbor/ledger.py"), "line"),
        (said("ls", "Two hundred and fourteen lines into `ledger.py` a slope is appended."), "line"),
        (said("ls", "The fault is 214 lines into harbor/ledger.py."), "line"),
        (said("ls", "In ledger.py at 214 a slope is appended."), "line"),
        (said("ls", "See harbor/ledger.py (l. 214)."), "line"),
        (VIEW.format("view_range", "[210, 218]"), "line"),
        (VIEW.format("line", "214"), "line"),
        # names in the forms of languages and shells
        (said("python -c 'from harbor import smear'"), "path"),
        (said("wc -l harbor/{ledger,smear}.py"), "encoded"),
        (said("pytest -k 'clip_slope$'"), "identifier"),
        # references glued to their word
        (said("git switch -c fix/gh3154-slope"), "value"),
        (said("git branch bug3154_slope"), "value"),
        (said("git log --reflog -p"), "future"),
        (said("ls", "The project ended up clipping it, so I do the same."), "admission"),
    ],
)
def test_a_leak_in_another_form_is_found(answer: str, kind: str) -> None:
    assert kind in flags(answer)


@pytest.mark.parametrize(
    "answer",
    [
        said("sed -n '187,230p' harbor/ledger.py"),
        said("sed -n '200,240p' harbor/ledger.py"),
        VIEW.format("view_range", "[180, 240]"),
        "<function=create>\n<parameter=path>t.py</parameter>\n<parameter=file_text>t.post(213)\n</parameter>\n</function>",
        said("python -c 'from os import path; from harbor import ledger'"),
        said("ls harbor/{ledger,clock}.py; node -e 'const {a,b} = x'"),
        said("grep -rnE 'slope(s)?|tick(er)?' harbor"),
        said("ls", "A tick ended up in the wrong epoch. The repository should end up with no such slope."),
        said("git reflog | head -3"),
    ],
)
def test_an_honest_answer_in_such_a_form_is_none(answer: str) -> None:
    assert flags(answer) == set()


PEOPLE = PullRequestRecord(
    "lockhaven__sluice-88",
    "Open gates in order",
    "Gates of sluice 2.3.0 open in no order.",
    "OPS-5528, based on b7c04e91d. Reported by Ilse Hofmeyr <i.hofmeyr@example.org>, cc @tobiasreiter. "
    "Run `make gatelog` afterwards. It is part of 2.3.1-rc2 (2024-02-19). "
    "RFC 9110 demands a monotonic penstock sequence.",
    """--- a/sluice/gates.py
+++ b/sluice/gates.py
@@ -141,2 +141,2 @@ class Gates:
-        return gates
+        return sorted(gates, key=lambda gate: gate.sill)
--- /dev/null
+++ b/tests/test_gate_order.py
@@ -0,0 +1,3 @@
+@pytest.mark.floodplain
+def test_gates_survive_round_trip():
+    "upstream gates come first"
--- a/CHANGELOG.md
+++ b/CHANGELOG.md
@@ -1,1 +1,2 @@
+- Gates open from the upper pool downwards.
--- a/sluice/options.py
+++ b/sluice/options.py
@@ -8,1 +8,2 @@
+    parser.add_argument("--penstock")
""",
    ("sluice/gates.py", "tests/test_gate_order.py", "CHANGELOG.md", "sluice/options.py"),
)
READ = ["Gates of sluice 2.3.0 open in no order.", "$ sed -n '1,60p' sluice/gates.py", "sluice/options.py"]


@pytest.mark.parametrize(
    "answer",
    [
        *(
            said("ls", f"{words}.")
            for words in ("It is OPS-5528", "Hofmeyr saw it", "tobiasreiter knows", "2.3.1-rc2 has it")
        ),
        *(said(f"git {command}") for command in ("log --author=hofmeyr", "log --since 2024-02-19", "show b7c04")),
        *(
            said(f"pytest {words}")
            for words in ("-k survive_round", "-ksurvive_round", "-m floodplain", "-k 'upstream gates come'")
        ),
        *(said(f"tox -- -k {words}") for words in ("gates_survive", "survive_round_trip")),
        *(said(command) for command in ("make gatelog", "sluice --penstock", "sed -n '138,146p' sluice/gates.py")),
        said("sed -i '1i - Gates open from the upper pool downwards' CHANGELOG.md"),
        said("ls", "They ended up sorting the gates."),
        said("ls", "I remember this bug."),
    ],
)
def test_what_only_the_record_tells_is_found(answer: str) -> None:
    assert lint_leaks(answer, READ, PEOPLE).flagged(0.1)


@pytest.mark.parametrize(
    "answer",
    [
        *(
            said(f"pytest {words}")
            for words in ("-k gates", "-k 'order or not slow'", "-m slow", "tests/test_gates.py")
        ),
        *(
            said(command)
            for command in ("sluice --verbose", "sed -n '60,140p' sluice/gates.py", "pip show sluice", "make test")
        ),
        said("ls", "I have 2.3.0. A version such as 1.0.0 is an example, as is 2020-01-01."),
        said("ls", "RFC 9110 demands a monotonic sequence, which a penstock must keep."),
    ],
)
def test_what_anybody_may_write_is_none(answer: str) -> None:
    assert not lint_leaks(answer, READ, PEOPLE).flagged(0.1)
