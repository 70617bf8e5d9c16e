import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.agent.action import (
    MAX_ACTION_BYTES,
    Ending,
    FormatError,
    LoopFacts,
    cut_thinking,
    ending_of,
    loop_facts,
    read_action,
)

FENCED = "I look first.\n\n```bash\nls -la\n```\n"


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        (FENCED, "ls -la"),
        ("ls -la", "ls -la"),
        ("  ls -la \n", "ls -la"),
        ("```\nls\n```\nthen\n```\nrm -r x\n```", "ls"),
        ("```sh\ncat <<'E'\nline\nE\n```", "cat <<'E'\nline\nE"),
        ("~~~\necho '```'\n~~~", "echo '```'"),
        ("````\n```\n````", "```"),
        ("Then I do:\n   ```bash\n   ls\n   ```", "ls"),
        ("```exit```", "exit"),
        ("```\r\nls\r\n```\r\n", "ls"),
        ("<think>rm -r /\n```\nrm x\n```</think>\n```\nls\n```", "ls"),
        ("<think>first</think>so<thinking>second</thinking> ls", "so ls"),
        ("thinking aloud\n```\nrm x\n```\n</think>\nls", "ls"),
        ("```\ngrep '<think>' notes; grep '</think>' notes\n```", "grep '<think>' notes; grep '</think>' notes"),
        ("exit", "exit"),
        ("```\nexit 0\n```", "exit"),
        ("panic", "panic"),
        ("```\npanic   no such host \n```", "panic no such host"),
        ("exit 3", "exit 3"),
        ("cd /tmp; exit", "cd /tmp; exit"),
    ],
)
def test_the_action_of_a_reply(reply: str, action: str) -> None:
    assert read_action(reply) == action


@pytest.mark.parametrize(
    ("reply", "finish_reason", "why"),
    [
        ("", "", "holds no command"),
        (" \n\t", "stop", "holds no command"),
        ("```\n\n```", "stop", "holds no command"),
        ("<think>and so on", "stop", "holds no command"),
        ("```bash\nls", "stop", "not closed"),
        ("I would like to", "length", "cut off"),
        ("<think>and so", "length", "cut off"),
        ("x" * (MAX_ACTION_BYTES + 1), "stop", "16,385 bytes"),
        ("é" * (MAX_ACTION_BYTES // 2 + 1), "stop", "16,386 bytes"),
        ("echo \0", "stop", "NUL"),
        ("echo \ud800", "stop", "half a character"),
    ],
)
def test_a_reply_without_an_action_is_told_why(reply: str, finish_reason: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        read_action(reply, finish_reason=finish_reason)


def test_a_cut_reply_counts_where_its_block_is_whole() -> None:
    assert read_action(FENCED + "and now I exp", finish_reason="length") == "ls -la"


@pytest.mark.parametrize(
    ("action", "ending"),
    [
        ("exit", Ending("exit")),
        ("exit 0", Ending("exit")),
        ("panic", Ending("panic")),
        ("panic the queue is locked", Ending("panic", "the queue is locked")),
        ("exit 1", None),
        ("exit; ls", None),
        ("exit\nls", None),
        ("exiting", None),
        ("panicked", None),
        ("echo panic", None),
        ("EXIT", None),
    ],
)
def test_terminals_stand_alone(action: str, ending: Ending | None) -> None:
    assert ending_of(action) == ending


@given(st.text())
def test_any_reply_is_an_action_or_a_format_error(reply: str) -> None:
    try:
        action = read_action(reply)
    except FormatError as error:
        assert str(error)
    else:
        assert action == action.strip() != ""
        assert len(action.encode()) <= MAX_ACTION_BYTES
        assert "\0" not in action


@given(st.lists(st.sampled_from(["<think>", "</think>", "```", "\n", "ls", " "]), max_size=30).map("".join))
def test_reading_ends_whatever_tags_and_fences_do(reply: str) -> None:
    said = cut_thinking(reply)
    assert len(said) <= len(reply)
    assert cut_thinking(said) in (said, "") or "think" in said


@pytest.mark.parametrize("part", ["</think>", "<think>x</think>", "<think>", "a</think>\n"])
def test_a_long_reply_is_read_soon(part: str) -> None:
    """A worker reads the replies of all its runs in one thread."""
    began = time.process_time()
    cut_thinking(part * (200_000 // len(part)))
    assert time.process_time() - began < 2


COMMANDS = st.text(st.characters(min_codepoint=32, exclude_characters="`", exclude_categories=["Cs"]), min_size=1).map(
    str.strip
)


@given(COMMANDS.filter(bool), st.text(st.characters(exclude_characters="`~<"), max_size=200))
def test_prose_around_the_block_never_becomes_part_of_the_command(command: str, prose: str) -> None:
    if ending_of(command) is None:
        assert read_action(f"{prose}\n```bash\n{command}\n```\n{prose}") == command


@pytest.mark.parametrize(
    ("commands", "facts", "looping"),
    [
        ([], LoopFacts(0, 0.0, 0), False),
        (["ls"], LoopFacts(1, 0.0, 1), False),
        (["ls", "ls"], LoopFacts(2, 0.5, 2), False),
        (["ls", "ls", "ls"], LoopFacts(3, 2 / 3, 3), True),
        (["a", "b", "a", "b"], LoopFacts(4, 0.5, 1), True),
        (["a", "b", "c", "a"], LoopFacts(4, 0.25, 1), False),
    ],
)
def test_the_loop_check(commands: list[str], facts: LoopFacts, looping: bool) -> None:
    assert loop_facts(commands) == facts
    assert facts.looping is looping
