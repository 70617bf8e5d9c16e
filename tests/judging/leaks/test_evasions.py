"""Leaks behind much other text, and texts that must not take a worker's time or memory."""

import base64
import json
import time
import tracemalloc
from dataclasses import replace
from string import ascii_lowercase

import pytest

from judging.leaks.history import HistoryText
from judging.leaks.lint import lint_leaks
from judging.leaks.reader import parse_reading
from judging.leaks.record import PullRequestRecord

PATCH = """--- a/src/spectral_blend.py
+++ b/src/spectral_blend.py
@@ -800,1 +800,3 @@
+def bind_key_names(options):
+    return options
+def load_every_option_of_all_of_them(options): ...
"""
RECORD = PullRequestRecord("acme__mix-12", "", "", "", PATCH, ("src/spectral_blend.py",))
WORDS = [f"worded{one}{two}" for one in ascii_lowercase[:20] for two in ascii_lowercase[:26]]
PATH = base64.b64encode(b"src/spectral_blend.py").decode()
SCRIPT = base64.b64encode(b"set -e\ncat src/spectral_blend.py\n").decode()


def answer(command: str, thought: str = "next.") -> str:
    return f"THOUGHT: {thought}\n```bash\n{command}\n```"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (answer(f"echo {PATH} | base64 -d", thought=" ".join(WORDS[:90])), "encoded"),
        (answer(" ".join(base64.b64encode(word.encode()).decode() for word in WORDS) + f" {PATH}"), "encoded"),
        (answer(f"echo {SCRIPT} | base64 -d | sh"), "encoded"),
        (answer(" ".join(f"'{word}'" for word in WORDS) + " 'bi' 'nd_key' '_na' 'mes'; x.join("), "assembled"),
        (answer(" ".join(WORDS) + "; python -c \"print('bind_ke' + 'y_names')\""), "assembled"),
        (answer(" ".join(f"{word}*" for word in WORDS[:100]) + " bi*nd_ke*nam*"), "pattern"),
        (answer("grep -rnE '(bi)+nd_.{2,3}_nam.{1,2}' src"), "pattern"),
    ],
    ids=["after words", "after other codes", "lines", "quoted", "fragments", "after patterns", "repeats"],
)
def test_a_leak_is_found_behind_much_else(text: str, kind: str) -> None:
    assert kind in {leak.kind for leak in lint_leaks(text, ["ls"], RECORD).leaked}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (answer("ruby -e 'puts %w[bind key names].join(\"_\")'"), "assembled"),
        (answer("python3 -c \"print('_'.join(['bind', 'key', 'names']))\""), "assembled"),
        (answer("a=spectral; b=blend; cat ${a}_${b}.py"), "assembled"),
        (answer("one='bind'\ntwo=names\ngrep -rn $one\"_key_${two}\" ."), "assembled"),
        (answer("ls", thought="The maintainers' eventual fix is short."), "admission"),
        (answer("ls", thought="Going by the diff I was given, options are the cause."), "admission"),
    ],
    ids=["word list", "code in quotes", "variables", "variables and words", "possessive", "given"],
)
def test_a_leak_is_found_in_other_forms(text: str, kind: str) -> None:
    assert kind in {leak.kind for leak in lint_leaks(text, ["ls"], RECORD).leaked}


@pytest.mark.parametrize(
    "command",
    [
        "cat src/blending/guess.py",
        "a=spectral; b=other; cat ${a}_${b}.py",
        "export KEY=names; make $KEY",
        "python3 -c \"print(','.join(['bind', 'names']))\"",
    ],
)
def test_a_listed_folder_and_other_variables_are_no_leak(command: str) -> None:
    record = replace(RECORD, files=("src/blending/spectral_blend.py",), patch=PATCH.replace("src/", "src/blending/"))
    assert lint_leaks(answer(command), ["ls src", "src:\nblending\n"], record).leaked == ()


@pytest.mark.parametrize(
    "text",
    [
        answer(r"grep -rnE '(\w+)+zqzq' ."),
        answer(r"grep -rnE '\w*\w*\w*\w*\w*\w*zqzq' ."),
        answer("echo 1" + ",234" * 1500),
    ],
    ids=["nested repeats", "many repeats", "a long number"],
)
def test_no_answer_holds_the_lint_up(text: str) -> None:
    began = time.thread_time()
    assert lint_leaks(text, ["ls"], RECORD).leaked == ()
    assert time.thread_time() - began < 2


def test_a_long_run_of_letters_in_the_history_takes_little_memory() -> None:
    tracemalloc.start()
    try:
        assert HistoryText("a" * 20_000, ()).knows_part("a" * 60)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_reply_of_the_reader_that_is_nested_without_end_is_no_reading() -> None:
    assert parse_reading('{"findings":' + "[" * 100_000, "answer", RECORD) is None
    found = {"answer": "blends it", "place": "patch", "record": "return options"}
    reading = parse_reading(json.dumps({"findings": [found]}) + '{"a":' * 100_000, "It blends it.", RECORD)
    assert reading is not None and len(reading.findings) == 1
