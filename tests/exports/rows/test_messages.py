"""Messages of a history: the fast path for plain ones gives the result of the slow one."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.exports.rows.messages import BadHistory, Conversation, conversation, length
from curation.exports.rows.skip_reasons import SkipReason

contents = st.one_of(
    st.text(), st.sampled_from(["", " ", "\n", "\u00a0", "<think>x</think>ls", "<think>", " ls", "a<think>"])
)
roles = st.sampled_from(["system", "user", "assistant", "developer", "function", "narrator"])
histories = st.lists(st.fixed_dictionaries({"role": roles, "content": contents}))


def read(history: list[dict[str, str]]) -> Conversation | SkipReason:
    try:
        return conversation(history)
    except BadHistory as bad:
        return bad.reason


@given(history=histories)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_fast_path_for_plain_messages_gives_the_result_of_the_slow_one(history: list[dict[str, str]]) -> None:
    """An extra key sends every message to the slow path."""
    assert read(history) == read([{**message, "weight": "1"} for message in history])


@given(history=histories)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_characters_are_those_of_the_exported_messages(history: list[dict[str, str]]) -> None:
    found = read(history)
    if isinstance(found, Conversation):
        assert length(found.messages) == sum(len(message["content"]) for message in found.messages)
