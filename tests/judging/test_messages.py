from judging.messages import content_of


def test_content_of_a_message_in_parts() -> None:
    assert content_of({"content": [{"type": "text", "text": "a"}, {"type": "image_url"}, {"text": "b"}]}) == "a\nb"
    assert content_of({"content": None, "tool_calls": []}) == ""
    assert content_of("plain") == "plain"
