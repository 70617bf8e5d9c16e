"""Any row is read or refused with a reason, and no field of it is without an account."""

import random
from typing import Any

import pytest

from curation.imports.layouts.messages.write import write_messages
from curation.imports.layouts.rows.read import read_row
from curation.imports.sources.rows import RowRefused
from judging.messages import message_text

COLUMNS = (
    *("messages", "conversations", "trajectory", "contents", "input", "output", "prompt", "completion", "chosen"),
    *("rejected", "rejected_messages", "king", "challenger", "assistant", "label", "system", "tools", "functions"),
    *("instruction", "question", "answer", "history", "text", "resolved", "reward", "rewards", "score", "outcome"),
    *("exit_status", "model", "attempt", "instance_id", "repo", "id", "Other"),
)
KEYS = (
    *("role", "from", "type", "author", "content", "text", "value", "parts", "tool_calls", "function_call", "name"),
    *("function", "arguments", "args", "input", "id", "tool_call_id", "call_id", "channel", "recipient", "thinking"),
    *("reasoning", "reasoning_details", "train", "loss", "kwargs", "data", "lc", "additional_kwargs", "source"),
    *("functionCall", "functionResponse", "inlineData", "image_url", "summary", "output", "action", "url"),
)
WORDS = (
    *("user", "assistant", "system", "tool", "human", "gpt", "function_call", "observation", "ai", "text", "tool_use"),
    *("tool_result", "thinking", "image_url", "reasoning", "function_call_output", "message", "analysis", "final"),
    *("", "<think>a</think>b", "x</think>y", '{"name": "ls", "arguments": {}}', '{"cut": "of', "a\x00b", "\ud800"),
)
PLAIN = (None, True, False, 0, 1, -1, 0.5, float("nan"))


def value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.random()
    if depth > 3 or kind < 0.45:
        return chance.choice((*PLAIN, *WORDS, *WORDS))
    if kind < 0.65:
        return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(KEYS): value(chance, depth + 1) for _ in range(chance.randrange(5))}


def messages(chance: random.Random) -> list[Any]:
    roles = ("user", "assistant", "tool", "system", "function_call")
    return [
        {"role": chance.choice(roles), "content": chance.choice(WORDS), chance.choice(KEYS): value(chance)}
        for _ in range(chance.randrange(5))
    ]


@pytest.mark.parametrize("seed", range(5))
def test_any_row_is_read_or_refused_and_accounted_for(seed: int) -> None:
    chance, read = random.Random(seed), 0
    for _ in range(500):
        row = {
            chance.choice(COLUMNS): messages(chance) if chance.random() < 0.4 else value(chance)
            for _ in range(chance.randrange(1, 6))
        }
        try:
            session, account = read_row(row)
        except RowRefused:
            continue
        read += 1
        for steps in (session.steps, *(ending.steps for ending in session.endings)):
            for message in write_messages(steps):
                message_text(message).encode()
        fields = {entry["field"].partition("[")[0].partition(".")[0] for entry in account.entries()}
        filled = {name for name, given in row.items() if given not in (None, "", [], {}) and given == given}
        assert fields >= filled
    assert read > 20
