"""Replies that count as a verdict, and verdicts that are missing rather than lost."""

import json
import time

import pytest

from judging.panel.parsing import ParsedVerdict, Unparsed, parse_verdict
from judging.panel.rubric import DIMENSIONS
from tests.sampled import one_of

VALUES = {"correctness": 1, "grounding": 2, "progress": 0, "protocol": 0, "efficiency": 1}
LINE = json.dumps({**VALUES, "reason": "The first reads the right file."})
SPELLED = ["1", "second", "Draw", "tie", "answer_1"]
VERDICT = ParsedVerdict(VALUES, "The first reads the right file.")


def parse(raw: str, finish_reason: str = "stop") -> ParsedVerdict | Unparsed:
    return parse_verdict(raw, finish_reason=finish_reason)


@pytest.mark.parametrize(
    "raw",
    [
        LINE,
        f"```json\n{LINE}\n```",
        f"Here is my verdict:\n\n{LINE}\n\nThat is all {{really}}.",
        json.dumps(json.loads(LINE), indent=2),
        f"<think>first {json.dumps(dict.fromkeys(DIMENSIONS, 2))}</think>{LINE}",
        f"{json.dumps(dict.fromkeys(DIMENSIONS, 2))}\nOn second thought:\n{LINE}",
        f'{LINE}\n{{"note": "no verdict"}}',
        f"{LINE}\n{json.dumps({'correctness': 2})}",
        f"{{broken {{ {LINE}",
        LINE.replace("correctness", "Correct").replace("grounding", "groundedness").replace("efficiency", "eff"),
        LINE.replace("protocol", "protocol_compliance").replace("progress", "PROGRESS").replace("reason", "Rationale"),
        json.dumps({"scores": VALUES, "reason": "The first reads the right file."}),
        json.dumps({"verdict": {"dimensions": VALUES, "reason": "The first reads the right file."}}),
        json.dumps(dict(zip([*DIMENSIONS, "why"], [*SPELLED, VERDICT.reason], strict=True))),
        json.dumps({**{d: {"winner": v} for d, v in VALUES.items()}, "reason": "The first reads the right file."}),
    ],
)  # fmt: skip
def test_replies_with_a_verdict(raw: str) -> None:
    assert parse(raw) == VERDICT


def test_a_complete_object_counts_even_when_the_reply_was_cut_after_it() -> None:
    assert parse(LINE + "\nMoreover, the", "length") == VERDICT


def test_a_missing_reason_is_no_loss() -> None:
    assert parse(json.dumps(VALUES)) == ParsedVerdict(VALUES, "")


@pytest.mark.parametrize(
    ("raw", "finish_reason", "reason"),
    [
        ("", "stop", "empty reply"),
        ("  \n", "stop", "empty reply"),
        (f"<think>{LINE}</think>", "stop", "empty reply"),
        (f"<think>{LINE}", "stop", "empty reply"),
        (f"<think>{LINE}", "length", "truncated: the token limit was reached before an answer"),
        (LINE[:60], "length", "truncated: the token limit was reached before the JSON object was complete"),
        (LINE[:60], "stop", "no JSON object with the expected keys"),
        ("Both answers have their merits.", "stop", "no JSON object with the expected keys"),
        ("{}", "stop", "no JSON object with the expected keys"),
        ("[1, 2, 0, 0, 1]", "stop", "no JSON object with the expected keys"),
        (json.dumps({**VALUES} | {"progress": 3}), "stop", "value of progress must be 0, 1 or 2, not 3"),
        (json.dumps({**VALUES} | {"progress": -1}), "stop", "value of progress must be 0, 1 or 2, not -1"),
        (json.dumps({**VALUES} | {"progress": True}), "stop", "value of progress must be 0, 1 or 2, not true"),
        (json.dumps({**VALUES} | {"progress": None}), "stop", "value of progress must be 0, 1 or 2, not null"),
        (json.dumps({**VALUES} | {"progress": 0.5}), "stop", "value of progress must be 0, 1 or 2, not 0.5"),
        (json.dumps({**VALUES} | {"progress": "better"}), "stop", 'value of progress must be 0, 1 or 2, not "better"'),
        (json.dumps({d: VALUES[d] for d in DIMENSIONS[:3]}), "stop", "missing dimension: protocol, efficiency"),
        (json.dumps({**VALUES, "correct": 2}), "stop", "key given twice: correctness"),
    ],
)
def test_replies_that_are_unparsed_and_why(raw: str, finish_reason: str, reason: str) -> None:
    assert parse(raw, finish_reason) == Unparsed(reason)


def test_the_last_object_with_the_keys_wins_even_if_it_is_wrong() -> None:
    assert isinstance(parse(f"{LINE}\n{json.dumps({**VALUES} | {'protocol': 9})}"), Unparsed)


@pytest.mark.parametrize(
    "piece",
    one_of(
        5,
        [
            *("{", '{"', '{"a":', '{"correctness":', "{ ", '"', "}{", '{"a": "\\"', "<think>", "</think>", "```", "["),
            *("{'a':", "\\", '{"a":['),
        ],
    ),
)
def test_a_hostile_megabyte_takes_little_time(piece: str) -> None:
    started = time.thread_time()
    result = parse(piece * (1_000_000 // len(piece)))
    assert time.thread_time() - started < 3.0
    assert isinstance(result, Unparsed)


def test_a_verdict_behind_much_harmless_text_is_found() -> None:
    assert parse("{{{ a brace, " * 70_000 + LINE) == VERDICT
    assert parse("9" * 10_000 + json.dumps({"n": 1}) + '{"x": ' + "9" * 9_000 + "}" + LINE) == VERDICT
