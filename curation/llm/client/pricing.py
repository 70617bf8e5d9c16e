"""The cost of a call in US dollars. An unknown cost is None, never 0."""

from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

import httpx
from pydantic import JsonValue

from curation.llm.client.completion import EndpointTarget

MILLION = Decimal(1_000_000)
# Costs are rounded once, here, so that sums of rows and counters agree.
PLACES = Decimal("0.00000001")
# A single call that costs more is a mistake of who reports it.
MOST_COST = Decimal(10_000)


def cost_of(target: EndpointTarget, tokens_in: int | None, tokens_out: int | None) -> Decimal | None:
    """Cost by the endpoint's prices; None if a price or a token count is missing. Scripted models are free."""
    if target.model.startswith("scripted/"):
        return Decimal(0)
    if target.price_in is None or target.price_out is None or tokens_in is None or tokens_out is None:
        return None
    return rounded((target.price_in * tokens_in + target.price_out * tokens_out) / MILLION)


def reported_cost(document: JsonValue, headers: httpx.Headers) -> Decimal | None:
    """Return the cost that a router or a proxy reports with its answer. That of a call with the user's own key at
    another provider is only the router's part, so it is not the cost."""
    usage = document.get("usage") if isinstance(document, dict) else None
    said: JsonValue = headers.get("x-litellm-response-cost")
    if isinstance(usage, dict) and usage.get("cost") is not None:
        said = None if usage.get("is_byok") else usage["cost"]
    try:
        cost = Decimal(str(said))
        return rounded(cost) if cost.is_finite() and 0 <= cost < MOST_COST else None
    except InvalidOperation:
        return None


def rounded(cost: Decimal) -> Decimal:
    return cost.quantize(PLACES, ROUND_HALF_UP)
