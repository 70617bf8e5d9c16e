"""Messages of a history: the fast path for plain ones gives the result of the slow one."""

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from curation.exports.rows.messages import BadHistory, ExportedMessage, conversation, length
from curation.exports.rows.skip_reasons import SkipReason

contents = st.one_of(
    st.text(), st.sampled_from(["", " ", "\n", "\u00a0", "<think>x</think>ls", "<think>", " ls", "a<think>"])
)
roles = st.sampled_from(["system", "user", "assistant", "developer", "function", "narrator"])
histories = st.lists(st.fixed_dictionaries({"role": roles, "content": contents}))


def read(history: list[dict[str, Any]], **how: bool) -> list[ExportedMessage] | SkipReason:
    try:
        return conversation(history, **how)
    except BadHistory as bad:
        return bad.reason


@given(history=histories)
def test_the_fast_path_for_plain_messages_gives_the_result_of_the_slow_one(history: list[dict[str, str]]) -> None:
    """An extra key sends every message to the slow path."""
    assert read(history) == read([{**message, "weight": "1"} for message in history])


calls = st.just([{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}])
written = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": contents},
    optional={
        "tool_calls": calls,
        "reasoning_content": st.just("x"),
        "name": st.just("ada"),
        "tool_call_id": st.just("c1"),
    },
)


@given(history=st.lists(written), reasoning=st.booleans())
def test_messages_of_a_session_are_taken_as_they_were_written(history: list[dict[str, Any]], reasoning: bool) -> None:
    found, expected = [
        read(deepcopy(given), reasoning=reasoning, is_written=True)
        for given in (history, [{**message, "weight": "1"} for message in history])
    ]
    assert found == expected


@given(history=histories)
def test_characters_are_those_of_the_exported_messages(history: list[dict[str, str]]) -> None:
    found = read(history)
    if isinstance(found, list):
        assert length(found) == sum(len(message["content"]) for message in found)
