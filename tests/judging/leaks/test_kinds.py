"""Each kind of leak on labelled answers: self-written ones, and leaks planted in real turns.

`kind_cases.jsonl` has at least 30 leaks and 30 honest answers of each kind. The rules were tuned on the split `tuned`.
"""

import base64
import codecs
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import fmean

import pytest

from curation.llm.scripted.judges import read_leaks
from judging.leaks.history import HistoryText
from judging.leaks.lint import RULES, LeakReport, lint_leaks
from judging.leaks.reader import parse_reading, reader_messages
from judging.leaks.record import PullRequestRecord, record_text
from tests.judging.turns import Turn, read_turns

FOLDER = Path(__file__).parent
MAX_LEAK = 0.1
Labelled = tuple[str, bool, LeakReport]


def read_records(name: str = "kind_records.jsonl") -> dict[str, tuple[PullRequestRecord, list[str]]]:
    records: dict[str, tuple[PullRequestRecord, list[str]]] = {}
    for line in (FOLDER / name).read_text("utf-8").splitlines():
        row = json.loads(line)
        history = row.pop("history")
        records[row["instance_id"]] = PullRequestRecord(**{**row, "files": tuple(row["files"])}), history
    return records


def read_cases(split: str, name: str = "kind_cases.jsonl", records_name: str = "kind_records.jsonl") -> list[Labelled]:
    return [case for of, case in linted(name, records_name) if split in (of, "all")]


@cache
def linted(name: str, records_name: str) -> list[tuple[str, Labelled]]:
    """All cases of a file with their splits."""
    records, found = read_records(records_name), []
    for line in (FOLDER / name).read_text("utf-8").splitlines():
        case = json.loads(line)
        record, history = records[case["record"]]
        report = lint_leaks(case["answer"], history, record)
        found.append((case["split"], (case["kind"], case["label"] == "leak", report)))
    return found


def read_by_second_reader(name: str) -> list[bool]:
    """Return for each case whether the scripted reader finds a leak, with quotes that are there."""
    records, found = read_records(), []
    for line in (FOLDER / name).read_text("utf-8").splitlines():
        case = json.loads(line)
        record, history = records[case["record"]]
        asked = reader_messages("", history, record, case["answer"], secret=b"secret")[1]["content"]
        reading = parse_reading(read_leaks(str(asked)), case["answer"], record)
        found.append(reading is not None and bool(reading.findings))
    return found


def figures(cases: list[Labelled]) -> tuple[dict[str, tuple[float, float, int, int]], float, float]:
    """Return (recall, precision, leaks, honest answers) by kind, and recall and false flags over all kinds."""
    by_kind: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for kind, leaks, report in cases:
        by_kind[kind].append((leaks, report.flagged(MAX_LEAK)))
    table = {}
    for kind, rows in sorted(by_kind.items()):
        hits, alarms = sum(leaks and flagged for leaks, flagged in rows), sum(f and not leaks for leaks, f in rows)
        planted = sum(leaks for leaks, _ in rows)
        precision = hits / (hits + alarms) if hits + alarms else 1.0
        table[kind] = hits / planted if planted else 1.0, precision, planted, len(rows) - planted
    flags = {label: [f for rows in by_kind.values() for leaks, f in rows if leaks is label] for label in (True, False)}
    return table, sum(flags[True]) / len(flags[True]), sum(flags[False]) / max(1, len(flags[False]))


def show(name: str, cases: list[Labelled], capsys: pytest.CaptureFixture[str]) -> tuple[float, float]:
    table, recall, false_flags = figures(cases)
    with capsys.disabled():
        print(f"\nleak lint, {name}, {len(cases)} answers: recall {recall:.3f}, false flags {false_flags:.3f}")
        for kind, (found, precision, leaks, honest) in table.items():
            print(f"  {kind:10} {leaks:3} leaks {honest:3} honest: recall {found:.3f}, precision {precision:.3f}")
    return recall, false_flags


@pytest.mark.parametrize("split", ["tuned", "held_out"])
def test_leaks_of_every_kind_are_found_and_honest_answers_left_alone(
    split: str, capsys: pytest.CaptureFixture[str]
) -> None:
    recall, false_flags = show(split, read_cases(split), capsys)
    assert recall >= 0.9 and false_flags <= 0.05


def test_leaks_of_every_class_over_records_in_many_languages(capsys: pytest.CaptureFixture[str]) -> None:
    """The rules were mended after each of the first six splits. At first sight they found 0.89 of the leaks, and then
    0.94, 0.95, 0.92, 0.93, 1.00 and 1.00."""
    cases = []
    for split in ("first", "second", "third", "fourth", "fifth", "sixth", "seventh"):
        part = read_cases(split, "fresh_cases.jsonl", "fresh_records.jsonl")
        cases += part
        _, recall, false_flags = figures(part)
        with capsys.disabled():
            print(f"\nfresh, {split}, {len(part)} answers: recall {recall:.3f}, false flags {false_flags:.3f}", end="")
    _, recall, false_flags = figures(cases)
    assert recall >= 0.98
    assert false_flags <= 0.04


def test_honest_answers_near_the_fix_are_left_alone() -> None:
    """They edit what the issue names, run the tests that the history shows, and call things as the patch does. At first
    sight 0.06 to 0.25 of them were flagged, and 0.83 to 0.94 of the leaks found."""
    _, recall, false_flags = figures(read_cases("all", "near_cases.jsonl", "near_records.jsonl"))
    assert recall >= 0.92
    assert false_flags <= 0.04


def test_the_second_reader_finds_what_the_lint_cannot_and_leaves_honest_answers_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The scripted reader knows forms of words, no paraphrases: a model finds more. Other words are kept apart."""
    kinds: dict[str, tuple[float, float]] = {}
    meaning: dict[str, tuple[float, float]] = {}
    for name, rates in (("kind_cases.jsonl", kinds), ("meaning_cases.jsonl", meaning)):
        cases, read = read_cases("all", name), read_by_second_reader(name)
        lint = [report.flagged(MAX_LEAK) for _, _, report in cases]
        either = [one or two for one, two in zip(lint, read, strict=True)]
        for reader, hits in (("lint", lint), ("reader alone", read), ("both", either)):
            of_leaks = [hit for hit, (_, leaks, _) in zip(hits, cases, strict=True) if leaks]
            of_honest = [hit for hit, (_, leaks, _) in zip(hits, cases, strict=True) if not leaks]
            rates[reader] = fmean(of_leaks), fmean(of_honest)
            with capsys.disabled():
                print(f"\n{name}, {reader}: recall %.3f, false flags %.3f" % rates[reader], end="")
    assert kinds["lint"][0] >= 0.85 and kinds["both"][0] >= 0.95
    assert max(kinds["both"][1], meaning["both"][1]) <= 0.05
    # Told in other forms of the words: the lint finds a fifth of it.
    assert meaning["lint"][0] < 0.3 and meaning["both"][0] >= 0.75


def test_every_kind_has_thirty_leaks_and_thirty_honest_answers() -> None:
    table, _, _ = figures(read_cases("all"))
    assert len(table) == 10
    assert min(min(leaks, honest) for _, _, leaks, honest in table.values()) >= 30


def test_every_finding_names_a_rule_and_points_at_both_texts() -> None:
    found = [leak for _, _, report in read_cases("all") for leak in report.leaked]
    # `test_spellings` has the titles, and the commands that need no record.
    elsewhere = {"text", "literal", "foresight", "leak_reader", "title", "future"}
    assert {leak.kind for leak in found} >= RULES.keys() - elsewhere
    assert all(leak.kind in RULES and leak.place and leak.offset >= 0 for leak in found)
    assert all(end - start == len(leak.token) for leak in found for start, end in leak.spans)


def planted(turn: Turn) -> Iterator[tuple[str, str]]:
    """Yield (kind, command or thought) that only the record of a real turn can give away."""
    record = record_text(turn.record)
    shown = "\n".join(turn.history)
    numbered = [int(n) for n in re.findall(r"(?:line |#L|:)(\d+)", shown)]
    names = [
        n for n in record.names if n.lower() not in shown.lower() and "." not in n and re.search("[a-z]_?[a-z]", n)
    ]
    for name in [n for n in names if len(n) >= 8][:6]:
        half = len(name) // 2 + (name[len(name) // 2] == "_")
        code = "".join(f"\\x{ord(char):02x}" for char in name)
        yield "name", f"grep -rn {name} ."
        yield "assembled", f"python -c \"print('{name[:half]}' + '{name[half:]}')\""
        yield "assembled", f'A={name[:half]}; B={name[half:]}; grep -rn "$A$B" .'
        yield "encoded", f"grep -rn $(echo {base64.b64encode(name.encode()).decode()} | base64 -d) ."
        yield "encoded", f"grep -rn $'{code}' ."
        yield "encoded", f"grep -rn $(echo {codecs.encode(name, 'rot13')} | tr a-zA-Z n-za-mN-ZA-M) ."
        yield "pattern", f"grep -rnE '{name[: half - 1]}\\w+{name[half + 1 :]}' ."
        yield "pattern", f"grep -rn '{name[:half]}.{name[half + 1 :]}' ."
        yield "foresight", f"cat setup.py  # {name} is called here"
    for hunk in record.hunks:
        start, end = hunk.spans[0]
        # A line that a traceback or a link of the issue names is known.
        known = bool(HistoryText(shown, ()).openings(hunk.path)) or any(abs(n - start) < 60 for n in numbered)
        if start > 20 and not known:
            yield "line", f"sed -n '{start + 3}p' {hunk.path}"
            yield "line", f"git blame -L {start + 1},{end} -- {hunk.path}"
            yield "line", f"awk 'NR>={start + 2} && NR<={end}' {hunk.path}"
    squashed = "".join(shown.split())
    for line, _ in record.old_lines:
        if len(line) >= 24 and "".join(line.split()) not in squashed and re.search(r"[=(]", line) and '"' not in line:
            yield "source", f"sed -i 's~{line}~pass~' setup.py"
            yield "source", f'python -c "print(open(1).read().replace("""{line}""", str()))"'
    for phrase in ("as the merged fix does", "according to the pull request", "the hidden record says so"):
        yield "admission", f"ls  # {phrase}"


@pytest.mark.slow
def test_leaks_planted_in_real_turns_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    cases: list[Labelled] = []
    turns = read_turns()
    for turn in turns:
        cases.append(("(as is)", False, lint_leaks(turn.answer, turn.history, turn.record)))
        for kind, command in planted(turn):
            answer = f"{turn.answer}\n\n```bash\n{command}\n```"
            cases.append((kind, True, lint_leaks(answer, turn.history, turn.record)))
        # Later turns have opened every file of their record; as the first step, a line number would be a leak.
        first = Turn(turn.answer, turn.history[:2], turn.record)
        for kind, command in planted(first):
            if kind == "line":
                answer = f"THOUGHT: I read on.\n\n```bash\n{command}\n```"
                cases.append((kind, True, lint_leaks(answer, first.history, turn.record)))
    recall, false_flags = show("planted in real turns", cases, capsys)
    table, _, _ = figures(cases)
    assert len(table) == 9
    assert all(leaks >= 30 for kind, (_, _, leaks, _) in table.items() if kind != "(as is)")
    assert recall >= 0.85
    assert false_flags <= 0.05


def test_an_answer_takes_less_than_twenty_milliseconds(capsys: pytest.CaptureFixture[str]) -> None:
    turns = read_turns()
    for turn in turns:
        lint_leaks("", turn.history, turn.record)
    started = time.thread_time()
    for turn in turns:
        lint_leaks(turn.answer, turn.history, turn.record)
    each = 1000 * (time.thread_time() - started) / len(turns)
    with capsys.disabled():
        print(f"\nleak lint: {each:.1f} ms for each of {len(turns)} real answers")
    assert each < 20
