"""Requests to models and their completions: plain data, the same for LiteLLM and the scripted models."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

import orjson

from curation.llm.client.tokens import Tokens
from judging.messages import ToolCall

Message = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class EndpointTarget:
    """An endpoint without its database row, as workers carry it. `project` is a slug."""

    endpoint_id: int
    name: str
    model: str
    api_base: str
    api_key_env: str
    params: Mapping[str, object]
    max_concurrency: int
    rpm: int | None
    tpm: int | None
    price_in: Decimal | None
    price_out: Decimal | None
    family: str
    project: str = ""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One request. Equal requests that need different answers differ in `sample_index` or `attempt`.

    `schema` is a JSON schema in OpenAI's `response_format` form, used if the model supports it. `tools` are functions
    that the model may call, in OpenAI's form. If `embed`, the messages are texts of which the endpoint returns the
    embeddings: the completion's text has one a line, as Base64 of 16-bit floats.
    """

    messages: Sequence[Message]
    params: Mapping[str, object] = field(default_factory=dict)
    sample_index: int = 0
    attempt: int = 1
    schema: Mapping[str, object] | None = None
    tools: Sequence[Mapping[str, object]] = ()
    embed: bool = False

    def content_hash(self, target: EndpointTarget) -> str:
        """SHA-256 of everything that decides the answer; the key of the request cache."""
        params = {**target.params, **self.params}
        for name in ("stream", "key_style"):  # how the answer arrives, how models are listed
            params.pop(name, None)
        parts: dict[str, object] = {
            "model": target.model,
            "api_base": target.api_base,
            "messages": self.messages,
            "params": params,
            "sample_index": self.sample_index,
            "attempt": self.attempt,
            "schema": self.schema,
        }
        if self.tools:
            parts["tools"] = self.tools
        if self.embed:
            parts["embed"] = True
        return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer. `text` is without thinking, with the tool calls as lines below it. Tokens that the endpoint did not
    report, and an unknown cost, are None. So is `first_token_ms` of an answer that was not streamed. `tokens` are
    their ids and log-probabilities, if they were asked for and the endpoint gives them (`client.tokens`)."""

    text: str
    thinking: str
    finish_reason: str
    tokens_in: int | None
    tokens_out: int | None
    tokens_cached: int | None
    cost: Decimal | None
    latency_ms: int
    tool_calls: Sequence[ToolCall] = ()
    first_token_ms: int | None = None
    tokens: Tokens = field(default_factory=dict)


class CompletionClient(Protocol):
    """Sends requests to a model."""

    async def complete(self, target: EndpointTarget, request: CompletionRequest) -> Completion: ...
