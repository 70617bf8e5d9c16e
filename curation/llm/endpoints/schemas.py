"""Request bodies and responses of the model endpoints' REST calls."""

from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from typing import ClassVar

from ninja import Schema
from pydantic import ConfigDict, Field, JsonValue

from curation.llm.endpoints.change import EndpointValues, values_of
from curation.llm.models import Endpoint
from curation.web.schemas import Strict
from curation.web.lists.params import ListParams

PARAMS = (
    "Sent with every request. What the server can do is said by `stream`, `takes_json_schema`, `takes_tools`, "
    "`takes_max_tokens` (false: limits are sent as `max_completion_tokens`), `key_style` (`bearer`, `azure` or "
    "`anthropic`: the header of the key when models are listed) and `api_version`."
)
PRICE = 'US dollars per 1,000,000 tokens, a decimal string; null is unknown, "0" is free.'


class EndpointList(ListParams):
    sorts: ClassVar = ("name", "-id", "id")


class EndpointPatch(Strict):
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
    price_in: Decimal | None = Field(None, examples=["0.15"], description=PRICE)
    price_out: Decimal | None = Field(None, examples=["0.6"], description=PRICE)
    family: str = Field("", examples=["qwen"], description="Judges of a generator's family are flagged.")

    def onto(self, endpoint: Endpoint) -> EndpointValues:
        given = {key: getattr(self, key) for key in self.model_fields_set}
        return EndpointValues(**{**asdict(values_of(endpoint)), **given})


class EndpointIn(EndpointPatch):
    """A new model endpoint; `name` and `model` are required."""

    name: str = Field(examples=["judge-a"])
    model: str = Field(examples=["openai/qwen2.5-coder-32b"], description="A LiteLLM string, or `scripted/…`.")

    def values(self) -> EndpointValues:
        return EndpointValues(**{key: getattr(self, key) for key in EndpointValues.__dataclass_fields__})


class OutageOut(Schema):
    """A model endpoint that is down: calls wait, and one tries it at intervals."""

    reason: str = Field(examples=["127.0.0.1:8001 refused the connection"], description="Its first failure.")
    since: datetime = Field(examples=["2026-01-31T09:30:00Z"])
    next_try_at: datetime = Field(examples=["2026-01-31T09:30:05Z"], description="If a run has work for it by then.")


class EndpointOut(Schema):
    model_config = ConfigDict(protected_namespaces=())

    id: str = Field(examples=["3"])
    name: str = Field(examples=["judge-a"])
    model: str = Field(examples=["openai/qwen2.5-coder-32b"])
    api_base: str = Field(examples=["http://127.0.0.1:8001/v1"])
    api_key_env: str = Field(examples=["MODEL_KEY_OPENAI"])
    params: dict[str, JsonValue] = Field(examples=[{"temperature": 0.2}])
    max_concurrency: int = Field(examples=[64])
    rpm: int | None = Field(examples=[600])
    tpm: int | None = Field(examples=[None])
    price_in: str | None = Field(examples=["0.15"], description=PRICE)
    price_out: str | None = Field(examples=["0.6"], description=PRICE)
    family: str = Field(examples=["qwen"])
    scripted: bool = Field(description="An offline, deterministic stand-in for a model.")
    outage: OutageOut | None = Field(description="Why workers send it no calls; null while it is up.")
    version: int = Field(examples=[1], description="The `ETag`; send it as `If-Match` with a change.")
    created_at: datetime = Field(examples=["2026-01-31T09:30:00Z"])

    @staticmethod
    def of(endpoint: Endpoint) -> "EndpointOut":
        down = endpoint.outage
        return EndpointOut(
            id=str(endpoint.pk),
            name=endpoint.name,
            model=endpoint.model,
            api_base=endpoint.api_base,
            api_key_env=endpoint.api_key_env,
            params=endpoint.params,
            max_concurrency=endpoint.max_concurrency,
            rpm=endpoint.rpm,
            tpm=endpoint.tpm,
            price_in=price_text(endpoint.price_in),
            price_out=price_text(endpoint.price_out),
            family=endpoint.family,
            scripted=endpoint.is_scripted,
            outage=OutageOut(reason=down.down_reason, since=down.down_at, next_try_at=down.next_try_at)
            if down
            else None,
            version=endpoint.version,
            created_at=endpoint.created_at,
        )


class ServedOut(Schema):
    data: list[str] = Field(examples=[["qwen2.5-coder-32b"]])


def price_text(price: Decimal | None) -> str | None:
    """A price without trailing zeros; None stays None, because unknown is not 0."""
    return None if price is None else f"{price.normalize():f}"
