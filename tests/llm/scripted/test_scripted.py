"""Scripted models: honest, repeatable stand-ins, and a demo whose duels reach every bucket."""

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from curation.llm import scripted
from curation.llm.scripted import SCRIPTED_MODELS, UnknownScriptedModel, reply
from curation.llm.scripted.answers import turn_key, written_answers

DEMO = Path(scripted.__file__).parents[2] / "dashboard" / "demo" / "files"
DIMENSIONS = ("correctness", "grounding", "progress", "protocol", "efficiency")
PANEL = ("judge-careful", "judge-brisk", "judge-first")
NO_RECORD = "fennel-mail__mailroom-19"
OVERSIZED = "larkspur__atlas-ui-2048"
Chat = list[dict[str, str]]


@dataclass(frozen=True)
class Turn:
    instance_id: str
    history: Chat
    reference: str


@cache
def demo_turns() -> tuple[Turn, ...]:
    return tuple(_read_turns())


def _read_turns() -> Iterator[Turn]:
    for line in (DEMO / "turns.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for index, message in enumerate(row["messages"]):
            if index >= 2 and message["role"] == "assistant":
                yield Turn(row["instance_id"], row["messages"][:index], message["content"])


def demo_records() -> dict[str, dict[str, object]]:
    lines = (DEMO / "pr_records.jsonl").read_text(encoding="utf-8").splitlines()
    return {record["instance_id"]: record for record in map(json.loads, lines)}


def make_judge_messages(history: Chat, first: str, second: str) -> Chat:
    talk = "\n\n".join(f"[{n}] {m['role']}:\n{m['content']}" for n, m in enumerate(history, 1))
    user = (
        f"<history>\n{talk}\n</history>\n\n<answer_1>\n{first}\n</answer_1>\n\n<answer_2>\n{second}\n</answer_2>\n\n"
        "Reply with one JSON object on one line."
    )
    return [{"role": "system", "content": "You compare two answers."}, {"role": "user", "content": user}]


def verdict(judge: str, history: Chat, first: str, second: str, attempt: int = 1) -> dict[str, int] | None:
    try:
        reading = json.loads(reply(judge, make_judge_messages(history, first, second), attempt=attempt).text)
    except ValueError:
        return None
    return {dimension: reading[dimension] for dimension in DIMENSIONS}


def answers_of(turn: Turn) -> tuple[str, str]:
    return reply("king", turn.history, attempt=2).text, reply("challenger", turn.history, attempt=2).text


def swapped(reading: dict[str, int]) -> dict[str, int]:
    return {dimension: {0: 0, 1: 2, 2: 1}[choice] for dimension, choice in reading.items()}


def judge_score(judge: str, turn: Turn) -> Fraction | None:
    """Challenger's score of one judge in fifths of half points: 1, ½ or 0 per dimension, both orders merged."""
    king, challenger = answers_of(turn)
    king_first = verdict(judge, turn.history, king, challenger)
    challenger_first = verdict(judge, turn.history, challenger, king)
    if king_first is None or challenger_first is None:
        return None
    points = Fraction(0)
    for dimension in DIMENSIONS:
        agreed = king_first[dimension] == swapped(challenger_first)[dimension]
        points += (
            {0: Fraction(1, 2), 1: Fraction(0), 2: Fraction(1)}[king_first[dimension]] if agreed else Fraction(1, 2)
        )
    return points / 5


def bucket(scores: Sequence[Fraction | None]) -> str:
    parsed = [score for score in scores if score is not None]
    if len(parsed) < len(scores):
        return "unparsed"
    score = 100 * sum(parsed, Fraction(0)) / len(parsed)
    return "final" if score >= 80 else "refined" if score >= 66 else "defeat"


def duelled_turns() -> list[Turn]:
    return [turn for turn in demo_turns() if turn.instance_id not in (NO_RECORD, OVERSIZED)]


HISTORY: Chat = [
    {"role": "system", "content": "Reply with a THOUGHT and one bash block."},
    {"role": "user", "content": "Fix total_price in shop/cart.py: the discount is subtracted twice."},
    {"role": "assistant", "content": "THOUGHT: Search.\n\n```bash\ngrep -rn total_price shop\n```"},
    {"role": "user", "content": "<returncode>0</returncode>\n<output>\nshop/cart.py:40:def total_price():\n</output>"},
]
GOOD = "THOUGHT: total_price is at line 40 of shop/cart.py.\n\n```bash\nsed -n '30,60p' shop/cart.py\n```"
AGAIN = "THOUGHT: Search for it.\n\n```bash\ngrep -rn total_price shop\n```"
INVENTED = "THOUGHT: The rebate module does it.\n\n```bash\nsed -n '1,60p' shop/pricing/rebates.py\n```"


# --- every model ---------------------------------------------------------------------------------------------------


def test_the_same_request_gets_the_same_reply_and_counts_its_tokens() -> None:
    messages = make_judge_messages(HISTORY, GOOD, AGAIN)
    for name in SCRIPTED_MODELS:
        first, second = reply(name, messages, sample_index=1), reply(name, messages, sample_index=1)
        assert first == second
        assert first.tokens_in == -(-sum(len(m["content"]) for m in messages) // 4)
        assert first.tokens_out == -(-len(first.text) // 4) > 0


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(UnknownScriptedModel, match=r"'oracle'.*judge-careful"):
        reply("oracle", HISTORY)


def test_broken_always_begins_with_a_tool_call_token_and_echo_repeats_the_user() -> None:
    assert reply("broken", HISTORY, attempt=3).text.startswith("<|tool_calls_section_begin|>")
    assert reply("echo", HISTORY).text == HISTORY[-1]["content"]


def test_a_reply_takes_little_time() -> None:
    for turn in demo_turns():  # warm the parsed answers and histories, as a worker is after its first shard
        answers_of(turn)
    judged = [make_judge_messages(turn.history, *answers_of(turn)) for turn in duelled_turns()]
    calls = [(judge, messages) for messages in judged for judge in PANEL]
    calls += [(side, turn.history) for turn in demo_turns() for side in ("king", "challenger")]
    rounds = []
    for _ in range(3):  # the best of three, so that a busy machine does not decide
        started = time.perf_counter()
        for name, messages in calls:
            reply(name, messages)
        rounds.append(time.perf_counter() - started)
    assert min(rounds) / len(calls) < 0.005


# --- answers -------------------------------------------------------------------------------------------------------


def test_every_demo_turn_has_its_written_answers() -> None:
    keys = [turn_key(turn.history) for turn in demo_turns()]
    assert len(set(keys)) == len(keys), "two turns share a key, so one would get the other's answer"
    assert set(written_answers()) == set(keys)
    for turn in demo_turns():
        entry = written_answers()[turn_key(turn.history)]
        assert reply("king", turn.history, attempt=2).text == entry["king"]
        if turn.instance_id != NO_RECORD:
            record = {"role": "system", "content": f"The hidden record:\n{demo_records()[turn.instance_id]['title']}"}
            assert reply("challenger", [record, *turn.history], attempt=2).text == entry["challenger"]


def test_a_few_answers_are_refused_by_format_and_good_the_second_time() -> None:
    refused = [
        (side, turn)
        for turn in duelled_turns()
        for side in ("king", "challenger")
        if reply(side, turn.history).text.startswith("<|tool_call")
    ]
    assert 3 <= len(refused) <= 6
    assert {side for side, _ in refused} == {"king", "challenger"}
    assert all("```bash" in reply(side, turn.history, attempt=2).text for side, turn in refused)


def test_planned_leaks_name_what_is_only_in_the_record() -> None:
    records = demo_records()
    leaks = [t for t in duelled_turns() if "leaks" in written_answers()[turn_key(t.history)]]
    assert 4 <= len(leaks) <= 6
    secrets = ("maxSafeShift", "terminal_cells", "test_page_edges", "lib/router/decode.js", "config/load_defaults.go")
    for turn in leaks:
        answer, history = answers_of(turn)[1], json.dumps(turn.history)
        patch = str(records[turn.instance_id]["patch"])
        assert any(secret in answer and secret in patch and secret not in history for secret in secrets)


@pytest.mark.parametrize("side", ["king", "challenger"])
def test_an_unknown_turn_gets_a_plain_step_on_something_from_the_history(side: str) -> None:
    record = {"role": "system", "content": "diff --git a/shop/cart.py b/shop/cart.py"}
    texts = {reply(side, [record, *HISTORY], sample_index=n).text for n in range(6)}
    for text in texts:
        assert text.startswith("THOUGHT: ")
        assert text.count("```bash\n") == 1
        assert "shop/cart.py" in text or "grep -rn total_price shop" in text


def test_a_history_without_any_name_still_gets_an_answer() -> None:
    assert "```bash\nls\n```" in reply("king", [{"role": "user", "content": "Hello"}]).text


# --- judges --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("judge", ["judge-careful", "judge-brisk"])
def test_swapping_the_answers_swaps_the_verdict(judge: str) -> None:
    for turn in duelled_turns():
        king, challenger = answers_of(turn)
        forth, back = (verdict(judge, turn.history, *pair) for pair in ((king, challenger), (challenger, king)))
        assert forth is not None
        assert back == swapped(forth)


@pytest.mark.parametrize("judge", PANEL)
def test_a_repeated_command_and_an_invented_path_lose(judge: str) -> None:
    against_repeat = verdict(judge, HISTORY, GOOD, AGAIN)
    against_invention = verdict(judge, HISTORY, INVENTED, GOOD)
    assert against_repeat is not None
    assert against_invention is not None
    assert (against_repeat["progress"], against_repeat["efficiency"]) == (1, 1)
    assert (against_invention["grounding"], against_invention["correctness"]) == (2, 2)


def test_the_reason_names_what_decided() -> None:
    reason = json.loads(reply("judge-careful", make_judge_messages(HISTORY, INVENTED, GOOD)).text)["reason"]
    assert "answer 1 names shop/pricing/rebates.py, which the history does not show" in reason


def test_two_blocks_or_a_missing_thought_lose_on_protocol() -> None:
    bare = GOOD[GOOD.index("```") :]
    for worse in (bare, GOOD + "\n\n```bash\nls\n```"):
        reading = verdict("judge-careful", HISTORY, worse, GOOD)
        assert reading is not None
        assert reading["protocol"] == 2


def test_brisk_decides_more_often_than_careful() -> None:
    draws: Counter[str] = Counter()
    for turn in duelled_turns():
        for judge in ("judge-careful", "judge-brisk"):
            reading = verdict(judge, turn.history, *answers_of(turn))
            draws[judge] += sum(choice == 0 for choice in (reading or {}).values())
    assert draws["judge-brisk"] < draws["judge-careful"]


def test_first_flips_on_close_calls_but_not_on_clear_ones() -> None:
    near = GOOD.replace(
        "total_price is at line 40 of shop/cart.py.",
        "I read total_price in shop/cart.py, where the discount is subtracted twice.",
    )
    forth, back = verdict("judge-first", HISTORY, GOOD, near), verdict("judge-first", HISTORY, near, GOOD)
    assert forth is not None
    assert back is not None
    assert forth["correctness"] == back["correctness"] == 1
    clear, clear_back = verdict("judge-first", HISTORY, GOOD, AGAIN), verdict("judge-first", HISTORY, AGAIN, GOOD)
    assert clear is not None
    assert clear_back is not None
    assert (clear["progress"], clear_back["progress"]) == (1, 2)


def test_rambling_fails_a_share_for_good_and_some_only_once() -> None:
    outcomes: Counter[tuple[bool, bool]] = Counter()
    for number in range(200):
        messages = make_judge_messages(HISTORY, GOOD, f"{AGAIN}\n{number}")
        tries = [reply("judge-rambling", messages, attempt=attempt) for attempt in (1, 2)]
        outcomes["```json" in tries[0].text, "```json" in tries[1].text] += 1
    assert 0.15 < outcomes[False, False] / 200 < 0.45
    assert outcomes[False, True] > 0
    assert outcomes[True, False] == 0


def test_a_judge_without_two_answers_returns_no_verdict() -> None:
    for judge in (*PANEL, "judge-rambling"):
        said = reply(judge, HISTORY).text
        assert "does not hold both" in said
        assert "{" not in said


# --- the demo as a whole -------------------------------------------------------------------------------------------


def test_the_demo_has_turns_of_many_instances_and_one_without_a_record() -> None:
    instances = {turn.instance_id for turn in demo_turns()}
    assert 36 <= len(demo_turns()) <= 48
    assert instances - set(demo_records()) == {NO_RECORD}
    assert set(demo_records()) <= instances
    assert len(str(demo_records()[OVERSIZED]["patch"])) / 4 > 32_000


def test_duels_spread_over_all_buckets() -> None:
    turns = duelled_turns()
    spread = Counter(bucket([judge_score(judge, turn) for judge in PANEL]) for turn in turns)
    print(f"{len(turns)} duels: {dict(spread)}")
    assert 0.28 <= spread["final"] / len(turns) <= 0.47
    assert 0.18 <= spread["refined"] / len(turns) <= 0.35
    assert 0.18 <= spread["defeat"] / len(turns) <= 0.35
    assert 2 <= spread["unparsed"] <= 4


def test_unparsed_duels_stay_so_on_a_retry_and_only_judge_first_fails() -> None:
    for turn in duelled_turns():
        king, challenger = answers_of(turn)
        assert verdict("judge-careful", turn.history, king, challenger) is not None
        assert verdict("judge-brisk", turn.history, king, challenger) is not None
        if verdict("judge-first", turn.history, king, challenger) is None:
            again = reply("judge-first", make_judge_messages(turn.history, king, challenger), attempt=2)
            assert again.finish_reason == "length"


def test_some_kings_are_better() -> None:
    scores = [[judge_score(judge, turn) for judge in PANEL] for turn in duelled_turns()]
    assert sum(all(s is not None and s < Fraction(1, 2) for s in duel) for duel in scores) >= 3
