"""What a call cost, in US dollars. Unknown stays unknown (None); it is never taken for 0."""

from decimal import Decimal

from curation.llm.completion import Target

MILLION = Decimal(1_000_000)


def cost_of(target: Target, tokens_in: int | None, tokens_out: int | None) -> Decimal | None:
    """Cost by the endpoint's own prices; None where a price or a token count is missing. Scripted models are free."""
    if target.model.startswith("scripted/"):
        return Decimal(0)
    if target.price_in is None or target.price_out is None or tokens_in is None or tokens_out is None:
        return None
    return (target.price_in * tokens_in + target.price_out * tokens_out) / MILLION
