"""What the OpenAI client is kept from doing changes nothing of what is sent."""

import asyncio
from typing import Any

import pytest
from openai.types.chat import completion_create_params

from curation.llm import litellm_client

PLAIN = [
    {"role": "system", "content": "You operate a terminal."},
    {"role": "user", "content": "agent@host:~$ "},
    {"role": "assistant", "content": "ls"},
]
PARTS = [{"role": "user", "content": [{"type": "text", "text": "Look."}]}]
TOOL = [{"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]}]


def sent(transform: Any, messages: list[dict[str, Any]]) -> Any:
    body = {"messages": messages, "model": "m", "temperature": 0.5, "stop": ["x"], "stream": False}
    return asyncio.run(transform(body, completion_create_params.CompletionCreateParamsNonStreaming))


@pytest.mark.parametrize("messages", [PLAIN, PARTS, TOOL, [*PLAIN, *PARTS]])
def test_a_request_has_the_same_body(messages: list[dict[str, Any]]) -> None:
    ours, theirs = sent(litellm_client._transform, messages), sent(litellm_client._openai_transform, messages)
    assert ours == theirs
    assert list(ours) == list(theirs)


def test_the_client_uses_it() -> None:
    from openai.resources.chat.completions import completions

    assert vars(completions)["async_maybe_transform"] is litellm_client._transform
