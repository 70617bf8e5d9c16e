"""What is asked of a model and what comes back: plain data, the same for LiteLLM and the scripted models."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

import orjson

Message = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint as a worker needs it, free of the database row."""

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


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `sample_index` and `attempt` tell equal requests apart that want different answers.

    `schema` is a JSON schema in OpenAI's `response_format` form, used where the model supports it.
    """

    messages: Sequence[Message]
    params: Mapping[str, object] = field(default_factory=dict)
    sample_index: int = 0
    attempt: int = 1
    schema: Mapping[str, object] | None = None

    def content_hash(self, target: Target) -> str:
        """SHA-256 over all that decides the answer; the key of the request cache."""
        parts = {
            "model": target.model,
            "api_base": target.api_base,
            "messages": self.messages,
            "params": {**target.params, **self.params},
            "sample_index": self.sample_index,
            "attempt": self.attempt,
            "schema": self.schema,
        }
        return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer. `text` is without thinking; tokens are None where the endpoint did not say; `cost` None is unknown."""

    text: str
    thinking: str
    finish_reason: str
    tokens_in: int | None
    tokens_out: int | None
    tokens_cached: int | None
    cost: Decimal | None
    latency_ms: int


class Client(Protocol):
    """Something that can be asked."""

    async def complete(self, target: Target, request: Request) -> Completion: ...
