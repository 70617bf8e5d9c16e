"""The gateway to models: choose the client of an endpoint, make its row a `EndpointTarget`."""

import time
from collections.abc import Iterable
from dataclasses import fields
from decimal import Decimal

from curation.llm.client.completion import Completion, CompletionClient, CompletionRequest, EndpointTarget
from curation.llm.client.errors import Misconfigured
from curation.llm.client.pricing import MILLION, cost_of
from curation.llm.models import Endpoint

PRICE_PLACES = Decimal("0.000001")
_SAME = [field.name for field in fields(EndpointTarget) if field.name not in ("endpoint_id", "project")]


def target_of(endpoint: Endpoint) -> EndpointTarget:
    same = {name: getattr(endpoint, name) for name in _SAME}
    return EndpointTarget(endpoint_id=endpoint.pk, project=endpoint.project.slug, **same)


class ScriptedClient:
    """The offline models of `curation.llm.scripted`. Their answers are labelled as scripted."""

    async def complete(self, target: EndpointTarget, request: CompletionRequest) -> Completion:
        from curation.llm import scripted

        if request.embed:
            raise Misconfigured("scripted models have no embeddings")
        started = time.perf_counter()
        try:
            said = scripted.reply(
                target.model.removeprefix("scripted/"),
                request.messages,
                sample_index=request.sample_index,
                attempt=request.attempt,
            )
        except scripted.UnknownScriptedModel as error:
            raise Misconfigured(str(error)) from error
        return Completion(
            text=said.text,
            thinking="",
            finish_reason=said.finish_reason,
            tokens_in=said.tokens_in,
            tokens_out=said.tokens_out,
            tokens_cached=0,
            cost=cost_of(target, said.tokens_in, said.tokens_out),
            latency_ms=round((time.perf_counter() - started) * 1000),
        )


def client_for(target: EndpointTarget) -> CompletionClient:
    """Return the endpoint's client. LiteLLM is imported on first use, so only in workers."""
    if target.model.startswith("scripted/"):
        return ScriptedClient()
    from curation.llm.client.litellm_client import LiteLlmClient

    return LiteLlmClient()


def listed_prices(target: EndpointTarget) -> dict[str, str]:
    """Return an endpoint's prices per million tokens by LiteLLM's list, if it has none of its own. Only in workers."""
    is_own = target.price_in is not None or target.price_out is not None
    if is_own or target.api_base or target.model.startswith("scripted/"):
        return {}
    from curation.llm.client.litellm_client import listed_prices

    found = listed_prices(target.model)
    return {
        name: f"{(price * MILLION).quantize(PRICE_PLACES).normalize():f}"
        for name, price in zip(("price_in", "price_out"), found or (), strict=False)
    }


async def warm_up(targets: Iterable[EndpointTarget]) -> None:
    """Load the libraries that the clients of these endpoints need, before any lease or time limit starts."""
    if any(not target.model.startswith("scripted/") for target in targets):
        from curation.llm.client.litellm_client import warm_up

        await warm_up()
