from datetime import datetime
from decimal import Decimal
from typing import Annotated, ClassVar

from pydantic import Field, JsonValue, PlainSerializer

from curation.web.lists.filters import ListParams
from curation.web.schemas import Id, Out, StrictModel

PARAMS = (
    "Sent with every request. What the server can do is said by `stream`, `takes_json_schema`, `takes_tools`, "
    "`takes_max_tokens` (false: limits are sent as `max_completion_tokens`), `key_style` (`bearer`, `azure` or "
    "`anthropic`: the header of the key when models are listed) and `api_version`."
)
PRICE = 'US dollars per 1,000,000 tokens, a decimal string; null is unknown, "0" is free.'


class EndpointList(ListParams):
    sorts: ClassVar = ("name", "-id", "id")


def _shown(price: Decimal) -> str:
    """A price without trailing zeros."""
    return f"{price.normalize():f}"


Price = Annotated[Decimal, PlainSerializer(_shown, return_type=str)]


class EndpointPatch(StrictModel):
    """Only given fields change. `params` is replaced as a whole."""

    name: str = Field("", examples=["judge-a"])
    model: str = Field("", examples=["openai/qwen2.5-coder-32b"], description="A LiteLLM string, or `scripted/…`.")
    api_base: str = Field("", examples=["http://127.0.0.1:8001/v1"])
    api_key_env: str = Field(
        "",
        examples=["MODEL_KEY_OPENAI"],
        description="*Name* of the variable that contains the key; empty: none is sent.",
    )
    params: dict[str, JsonValue] = Field({}, examples=[{"temperature": 0.2, "max_tokens": 1024}], description=PARAMS)
    max_concurrency: int = Field(16, examples=[64])
    rpm: int | None = Field(None, examples=[600], description="Requests per minute, over all workers.")
    tpm: int | None = Field(None, examples=[200000], description="Tokens per minute, over all workers.")
    price_in: Price | None = Field(None, examples=["0.15"], description=PRICE)
    price_out: Price | None = Field(None, examples=["0.6"], description=PRICE)
    family: str = Field("", examples=["qwen"], description="Judges of a generator's family are flagged.")


class EndpointIn(EndpointPatch):
    """A new model endpoint; `name` and `model` are required."""

    name: str = Field(examples=["judge-a"])
    model: str = Field(examples=["openai/qwen2.5-coder-32b"], description="A LiteLLM string, or `scripted/…`.")


class OutageOut(Out):
    """A model endpoint that is down: calls wait, and one tries it at intervals."""

    reason: str = Field(
        validation_alias="down_reason",
        examples=["127.0.0.1:8001 refused the connection"],
        description="Its first failure.",
    )
    since: datetime = Field(validation_alias="down_at", examples=["2026-01-31T09:30:00Z"])
    next_try_at: datetime = Field(examples=["2026-01-31T09:30:05Z"], description="If a run has work for it by then.")


class EndpointOut(EndpointIn, Out):
    id: Id = Field(examples=["3"])
    scripted: bool = Field(
        validation_alias="is_scripted", description="An offline, deterministic stand-in for a model."
    )
    outage: OutageOut | None = Field(description="Why workers send it no calls; null while it is up.")
    version: int = Field(examples=[1], description="The `ETag`; send it as `If-Match` with a change.")
    created_at: datetime = Field(examples=["2026-01-31T09:30:00Z"])
