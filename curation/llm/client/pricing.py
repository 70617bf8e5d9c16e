"""The cost of a call in US dollars. An unknown cost is None, never 0."""

from decimal import ROUND_HALF_UP, Decimal

from curation.llm.client.completion import Target

MILLION = Decimal(1_000_000)
# Costs are rounded once, here, so that sums of rows and counters agree.
PLACES = Decimal("0.00000001")


def cost_of(target: Target, tokens_in: int | None, tokens_out: int | None) -> Decimal | None:
    """Cost by the endpoint's prices; None if a price or a token count is missing. Scripted models are free."""
    if target.model.startswith("scripted/"):
        return Decimal(0)
    if target.price_in is None or target.price_out is None or tokens_in is None or tokens_out is None:
        return None
    return rounded((target.price_in * tokens_in + target.price_out * tokens_out) / MILLION)


def rounded(cost: Decimal) -> Decimal:
    return cost.quantize(PLACES, ROUND_HALF_UP)
