"""Why an answer has ended, in the server's own words.

LiteLLM calls every reason that it does not know `stop`, also the same reason in other letters, so the reason is read
before LiteLLM sees the answer. An answer is whole, cut off by its limit, or withheld by a filter if its reason is in
`KNOWN`; all others are half an answer.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from curation.llm.client.streams import BrokenAnswer, RefusedAnswer, failure_of

STOP, CALLS = "stop", "tool_calls"
# OpenAI's word for each reason.
KNOWN: Mapping[str, str] = {
    **dict.fromkeys(("stop", "end_turn", "stop_sequence", "eos", "eos_token"), STOP),
    **dict.fromkeys(("complete", "completed", "finished", "done"), STOP),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "max_new_tokens", "max_length"), "length"),
    **dict.fromkeys(("tool_calls", "tool_call", "tool_use", "function_call"), CALLS),
    **dict.fromkeys(("content_filter", "content_filtered", "guardrail_intervened", "refusal"), "content_filter"),
    **dict.fromkeys(("safety", "recitation", "blocklist", "prohibited_content", "spii"), "content_filter"),
    **dict.fromkeys(("language", "image_safety", "error_toxic"), "content_filter"),
}
# The prompt and the answer fill the context window: a longer limit does not help, nor does another try.
CUT_OFF = frozenset({"model_context_window_exceeded", "model_length", "context_length_exceeded", "error_limit"})
# The server gave up, or the model wrote something that the server cannot read: the call is tried again.
TRIED_AGAIN = frozenset(
    {
        *("", "error", "abort", "aborted", "cancelled", "canceled", "cancel", "load", "unload", "timeout"),
        *("insufficient", "insufficient_system_resource", "network_error", "failed", "incomplete"),
        *("in_progress", "queued"),
        *("malformed_function_call", "malformed_response", "unexpected_tool_call", "too_many_tool_calls"),
        *("malformed_model_output", "malformed_tool_use", "other", "unknown", "finish_reason_unspecified"),
    }
)
# The provider's own reasons that count where a gateway in between says `stop`.
UNSAID = (CUT_OFF | TRIED_AGAIN | {word for word, end in KNOWN.items() if end in ("length", "content_filter")}) - {""}
# Where the forms of answers have the reason. OpenAI's comes first: beside it vLLM writes the stop string, or the number
# of the token, as `stop_reason`.
PLACES = ("finish_reason", "stop_reason", "stopReason", "finishReason", "done_reason")
LISTS = ("choices", "candidates")


def end_of(document: JsonValue) -> str:
    """Return OpenAI's word for the end of a whole document, '' for one that is no answer of a known form. Raise why it
    is no whole answer."""
    if not isinstance(document, dict):
        return ""
    if failure := failure_of(document):
        raise RefusedAnswer.of(failure)
    if blocked := _block_reason(document):
        raise RefusedAnswer(200, f"the prompt was blocked: {blocked}")
    part = _part(document)
    return "" if part is None else _end_of(part)


def _block_reason(document: dict[str, JsonValue]) -> JsonValue:
    """Why Google refuses the prompt of a document without an answer."""
    feedback = document.get("promptFeedback") or document.get("prompt_feedback")
    if not isinstance(feedback, dict) or any(document.get(name) for name in LISTS):
        return None
    return feedback.get("blockReason") or feedback.get("block_reason")


def end_of_event(event: JsonValue) -> str:
    """Return OpenAI's word for the end of a stream in another form than OpenAI's, or '' if this event says none. Raise
    why the stream has no whole answer."""
    if not isinstance(event, dict):
        return ""
    delta = event.get("delta")
    parts = (_part(event), delta if isinstance(delta, dict) else None)
    ends = [_end_of(part) for part in parts if part is not None and _reason(part)]
    return ends[-1] if ends else ""


def _part(document: dict[str, JsonValue]) -> dict[str, JsonValue] | None:
    """The part of a document that has the reason; None for one without an answer, such as embeddings."""
    for name in LISTS:
        found = document.get(name)
        if isinstance(found, list) and found and isinstance(found[0], dict):
            return found[0]
    if document.get("object") == "response":
        details = document.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        return {"finish_reason": reason or document.get("status")}
    is_answer = document.get("type") == "message" or "done" in document
    return document if is_answer or any(name in document for name in PLACES) else None


def _end_of(part: dict[str, JsonValue]) -> str:
    message = part.get("message")
    if failure := part.get("error") or (isinstance(message, dict) and message.get("error")):
        raise RefusedAnswer.of(failure)
    if isinstance(message, dict) and (refusal := message.get("refusal")):
        raise RefusedAnswer(200, f"the model refused to answer: {refusal}")
    reason, native = _reason(part), part.get("native_finish_reason")
    if isinstance(native, str) and native.strip().lower() in UNSAID:
        reason = native
    if part.get("done") and not reason:
        reason = "done"  # older versions of Ollama give none
    known = reason.strip().lower()
    if (filters := _filters(part)) and KNOWN.get(known) != "content_filter":
        raise RefusedAnswer(200, f"the answer was filtered: {', '.join(filters)}")
    if known in KNOWN:
        return KNOWN[known]
    if known in CUT_OFF:
        raise RefusedAnswer(200, f"the answer was cut off, because the context window is full ({reason})")
    if known in TRIED_AGAIN:
        raise BrokenAnswer(f"the answer is not whole: it ended with {reason!r}" if known else "the answer has no end")
    raise RefusedAnswer(200, f"the answer is not whole: it ended with {reason!r}, which is no known end")


def _filters(part: dict[str, JsonValue]) -> list[str]:
    """The names of Azure's filters that took something out of an answer."""
    results = part.get("content_filter_results")
    found = results.items() if isinstance(results, dict) else ()
    return [name for name, one in found if isinstance(one, dict) and one.get("filtered") is True]


def _reason(part: dict[str, JsonValue]) -> str:
    return next((str(part[name]) for name in PLACES if part.get(name)), "")
