from judging.messages import content_of, split_calls


def test_content_of_a_message_in_parts() -> None:
    assert content_of({"content": [{"type": "text", "text": "a"}, {"type": "image_url"}, {"text": "b"}]}) == "a\nb"
    assert content_of({"content": None, "tool_calls": []}) == ""
    assert content_of("plain") == "plain"


def test_a_call_that_is_nested_without_end_is_text() -> None:
    text = "[tool call] run " + '{"a":' * 100_000 + "}"
    assert split_calls(text, ["run"]) == (text, [])
