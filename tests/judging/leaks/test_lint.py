"""The leak lint on a labelled set, on real answers, and in its edges."""

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from judging.leaks.case import LeakedToken
from judging.leaks.lint import LeakReport, lint_leaks
from judging.leaks.record import PullRequestRecord
from tests.judging.turns import read_turns
from tests.sampled import one_of

FOLDER = Path(__file__).parent
MAX_LEAK = 0.1


PATCH = """--- a/gears/client.py
+++ b/gears/client.py
@@ -1,2 +1,3 @@ class GearClient:
 def send_packet(self):
+    retry_budget = RetryBudget(3)
"""


def make_record(
    *,
    title: str = "Retry on timeouts",
    issue: str = "Calls fail on timeouts\nThe client gives up with GearTimeout.",
    description: str = "",
    patch: str = PATCH,
) -> PullRequestRecord:
    return PullRequestRecord("acme__gears-1", title, issue, description, patch, ("gears/client.py",))


def read_cases(split: str) -> list[tuple[dict[str, str], LeakReport]]:
    records: dict[str, tuple[PullRequestRecord, list[str]]] = {}
    for line in (FOLDER / "leak_records.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        history = row.pop("history")
        records[row["instance_id"]] = PullRequestRecord(**{**row, "files": tuple(row["files"])}), history
    cases = []
    for line in (FOLDER / "leak_cases.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        if case["split"] == split:
            record, history = records[case["record"]]
            cases.append((case, lint_leaks(case["answer"], history, record)))
    return cases


def rates(cases: list[tuple[dict[str, str], LeakReport]]) -> Mapping[str, float]:
    flagged = {
        label: [r.flagged(MAX_LEAK) for case, r in cases if case["label"] == label] for label in ("leak", "honest")
    }
    hits, alarms = sum(flagged["leak"]), sum(flagged["honest"])
    return {
        "recall": hits / len(flagged["leak"]),
        "precision": hits / (hits + alarms),
        "false flags": alarms / len(flagged["honest"]),
    }


@pytest.mark.parametrize("split", ["tuned", "held_out"])
def test_planted_leaks_are_found_and_honest_answers_left_alone(split: str, capsys: pytest.CaptureFixture[str]) -> None:
    cases = read_cases(split)
    measured = rates(cases)
    with capsys.disabled():
        print(
            f"\nleak lint, {split}, {len(cases)} cases: " + ", ".join(f"{name} {v:.3f}" for name, v in measured.items())
        )
    assert measured["recall"] >= 0.95
    assert measured["false flags"] <= 0.05


def test_the_labelled_set_is_large_and_broad() -> None:
    cases = [case for split in ("tuned", "held_out") for case, _ in read_cases(split)]
    assert len(cases) >= 130
    assert len({case["record"] for case in cases}) >= 12
    assert len({case["id"] for case in cases}) == len(cases)


def test_real_agents_that_never_saw_the_record_are_hardly_flagged() -> None:
    turns = read_turns()
    flagged = [turn for turn in turns if lint_leaks(turn.answer, turn.history, turn.record).flagged(MAX_LEAK)]
    # Two remain, both by the letter: a notebook body that the agent itself wrote into its pull request, and a class
    # that the agent named before any listing showed it.
    assert len(turns) == 57
    assert len(flagged) <= 2


def test_a_leak_says_where_it_stands_on_both_sides() -> None:
    answer = "THOUGHT: use retry_budget; yes, retry_budget.\n```bash\nls\n```"
    record = make_record()
    report = lint_leaks(answer, ["Calls fail"], record)
    first, second = answer.index("retry_budget"), answer.rindex("retry_budget")
    offset = record.patch.index("retry_budget")
    spans = (first, first + 12), (second, second + 12)
    assert report.leaked == (LeakedToken("retry_budget", "identifier", spans, "patch", offset),)
    assert report.score == 1.0
    assert report.flagged(1.0), "a leaked identifier is enough with any score"


def test_the_score_is_leaked_by_checkable() -> None:
    answer = "THOUGHT: `my_helper`, `other_helper`, gears_cli.py and `retry_budget`.\n```bash\nls\n```"
    report = lint_leaks(answer, [""], make_record())
    assert (report.checkable, len(report.leaked), report.score) == (4, 1, 0.25)


def test_a_copied_text_counts_by_score_only() -> None:
    record = make_record(description="The client now waits between two attempts so that routers recover.")
    names = "`aa_bb`, `cc_dd`, `ee_ff`"
    answer = f"THOUGHT: The client now waits between two attempts so that routers recover; {names}.\n```bash\nls\n```"
    report = lint_leaks(answer, [""], record)
    assert [(token.kind, token.place, token.offset) for token in report.leaked] == [("text", "description", 0)]
    assert report.score == 0.25
    assert report.flagged(0.1)
    assert not report.flagged(0.25)


@pytest.mark.parametrize(
    ("history", "answer"),
    [
        ("ls gears\ngears:\nclient.py", "cat gears/client.py"),
        ("Traceback: /app/gears/client.py, line 3", "cat gears/client.py"),
        ("from gears.client import x", "cat /app/gears/client.py"),
        ("retryBudget is in the docs", "grep -rn retry_budget ."),
        ("there is no retry budget", "grep -rn 'retry_budget' ."),
        ("send is slow", "grep -rn 'send' gears  # shows send_packet"),
        ("", "grep -rn GearTimeout ."),
        ("", "pytest tests/ && cat README.md setup.py"),
    ],
)
def test_what_the_history_shows_or_a_search_would_print_is_honest(history: str, answer: str) -> None:
    assert lint_leaks(f"THOUGHT: next.\n```bash\n{answer}\n```", [history], make_record()).leaked == ()


@pytest.mark.parametrize(
    ("history", "answer"),
    [
        ("ls\nserver.py", "cat gears/client.py"),
        ("the folder docs/client.py is empty", "cat gears/client.py"),
        ("meta-client.py is shown", "cat gears/client.py"),
        ("nothing", "grep -rn 'send_packet' ."),
        ("budget is a word", "grep -rn 'budget' . # retry_budget is what we add"),
        ("nothing", "python -c 'import gears.client'"),
    ],
)
def test_text_that_only_the_record_has_is_a_leak(history: str, answer: str) -> None:
    assert lint_leaks(f"THOUGHT: next.\n```bash\n{answer}\n```", [history], make_record()).flagged(1.0)


def test_a_thought_that_names_what_only_its_search_can_reveal_is_a_leak() -> None:
    answer = "THOUGHT: `send_packet` does it.\n```bash\ngrep -rn 'send' gears  # shows send_packet\n```"
    report = lint_leaks(answer, ["send is slow"], make_record())
    at = answer.index("send_packet")
    assert [(leak.kind, leak.spans) for leak in report.leaked] == [("foresight", ((at, at + 11),))]
    assert report.flagged(1.0)


def test_the_number_and_commit_of_the_instance_are_no_part_of_the_history() -> None:
    record = replace(make_record(), instance_id="acme__gears-2317.73871d76ab.func_x")
    for answer in ("see #2317", "git show 73871d76ab"):
        report = lint_leaks(f"THOUGHT: {answer}", ["Calls fail"], record)
        assert [(leak.kind, leak.place) for leak in report.leaked] == [("value", "instance_id")], answer
    assert lint_leaks("THOUGHT: see #2317", ["Calls fail since #2317"], record).leaked == ()
    assert lint_leaks("THOUGHT: look into gears of acme", ["Calls fail"], record).leaked == ()
    named = replace(record, patch=record.patch + "+# func_x and 73871d76ab\n")
    assert lint_leaks("THOUGHT: look at `func_x`", ["Calls fail"], named).flagged(1.0)


@pytest.mark.parametrize(
    ("history", "answer"),
    [
        ("gears/parser.py is slow", "pytest tests/test_parser.py"),
        ("gears/parser.py is slow", "pytest tests -k TestParser"),
        ("the requests library is used", "python -c 'from urllib3.util import RetrySchedule'"),
        ('File "/app/gears/client.py", line 895, in send', "sed -n '890,899p' gears/client.py"),
        ("cat gears/client.py", "sed -n '895p' gears/client.py"),
    ],
)
def test_what_an_agent_can_know_is_no_leak(history: str, answer: str) -> None:
    patch = """--- a/gears/client.py
+++ b/gears/client.py
@@ -893,3 +893,4 @@
 from urllib3.util import RetrySchedule
--- /dev/null
+++ b/tests/test_parser.py
@@ -0,0 +1,2 @@
+class TestParser:
+    def test_parser(self): ...
"""
    text = f"THOUGHT: next.\n```bash\n{answer}\n```"
    assert lint_leaks(text, [history, "import urllib3"], make_record(patch=patch)).leaked == ()


def test_a_title_that_repeats_the_issue_is_no_secret() -> None:
    record = make_record(title="Broken frame_limit", issue="Broken frame_limit\nSee above.")
    assert lint_leaks("THOUGHT: look at frame_limit.", [""], record).leaked == ()
    assert (
        lint_leaks("THOUGHT: look at frame_limit.", [""], make_record(title="Raise frame_limit")).leaked[0].place
        == "title"
    )


def test_an_answer_without_anything_to_check_scores_zero() -> None:
    report = lint_leaks("THOUGHT: look.\n```bash\nls\n```", [], make_record())
    assert (report.score, report.checkable, report.flagged(0.0)) == (0.0, 0, False)


def test_a_long_history_and_patch_take_little_time() -> None:
    history = "".join(f"gears/part_{n}.py: def method_{n}(self): return value_{n}\n" for n in range(3400))
    patch = "".join(f"+    new_name_{n} = compute_thing_{n}('some text {n}')\n" for n in range(1900))
    names = " ".join(f"`method_{n}` new_name_{n * 7} gears/part_{n}.py" for n in range(40))
    answer = f"THOUGHT: {names}\n```bash\ngrep -rn method_7 gears\n```"
    record = make_record(patch=patch)
    lint_leaks(answer, [history], record)
    best = min(_seconds(answer, history, record) for _ in range(5))
    assert (len(history) > 200_000, len(patch) > 95_000) == (True, True)
    assert best < 0.2


def _seconds(answer: str, history: str, record: PullRequestRecord) -> float:
    started = time.thread_time()
    lint_leaks(answer, [history], record)
    return time.thread_time() - started


@pytest.mark.parametrize(
    "piece",
    one_of(
        4,
        [
            *("a.", "a/", "a-", '"a b ', "1,", "aB", "/", "a_b ", "`x", "#123 "),
            *("1 + ", "line 12 ", "head -3 | ", "<parameter=a>"),
        ],
    ),
)
def test_the_time_for_a_hostile_answer_grows_with_its_length_only(piece: str) -> None:
    small, large = (
        min(_seconds(piece * (size // len(piece)), "history", make_record()) for _ in range(2))
        for size in (5_000, 40_000)
    )
    assert large < 16 * small + 0.1  # 64 times as long, were it quadratic
