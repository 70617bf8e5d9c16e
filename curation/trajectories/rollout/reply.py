"""A model's answer as the reply of an agent."""

from curation.llm.client.completion import Completion
from judging.messages import without_calls
from sandbox.agent.episode import ModelReply
from sandbox.agent.tools import RequestedCall

# Names of the instructions of an operator that writes commands, and of one that calls functions.
OPERATORS = {False: "operator", True: "operator_tools"}


def reply_of(answer: Completion) -> ModelReply:
    """Return the reply. A call without an id, which some servers leave out, gets its place as one."""
    calls = [
        RequestedCall(
            str(call.get("id") or f"call_{place}"), str(call["function"]["name"]), str(call["function"]["arguments"])
        )
        for place, call in enumerate(answer.tool_calls)
    ]
    text = without_calls(answer.text, answer.tool_calls)
    tokens = (answer.tokens_in or 0) + (answer.tokens_out or 0)
    return ModelReply(text, answer.thinking, answer.finish_reason, tokens, calls, answer.tokens)
