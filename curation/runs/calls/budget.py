"""A run's budget: before a call is sent, the transaction that records it reserves the most the call can cost.

Reservations are rows, so all workers see them. A call of unknown cost (timed out, or lost with its worker) keeps its
reservation. A run can exceed its budget only if prompts have more tokens than estimated here.
"""

from decimal import Decimal

from django.db.models import Sum

from curation.llm.client.completion import CompletionRequest, EndpointTarget
from curation.llm.client.pricing import MILLION, PLACES
from curation.runs.models import Call, CallStatus, Run

MOST_TOKENS_OUT = 4096
# Bytes of UTF-8 per token, and tokens around a message. Tokenizers hardly ever make more tokens than this estimate.
BYTES_PER_TOKEN, TOKENS_PER_MESSAGE = 3, 8


class BudgetSpent(Exception):
    """The rest of the budget does not cover one more call."""


class BudgetHeld(Exception):
    """The rest of the budget does not cover one more call until calls under way have ended."""


def reserve_cost(
    run_id: int, target: EndpointTarget, request: CompletionRequest
) -> Decimal | BudgetHeld | BudgetSpent | None:
    """Return the most the call can cost, to be saved with it; None for a run without a budget. Needs a transaction.

    If that is more than is left, the exception is returned, not raised: other writes of the transaction must stay.
    """
    run = Run.objects.only("budget", "cost").get(pk=run_id)
    if run.budget is None:
        return None
    most = highest_cost(target, request)
    unsettled = Call.objects.filter(run_id=run_id, cost=None, reserved__isnull=False)
    held = unsettled.aggregate(held=Sum("reserved"))["held"] or Decimal(0)
    if run.cost + held + most > run.budget:
        return BudgetHeld() if unsettled.filter(status=CallStatus.SENT).exists() else BudgetSpent()
    return most


def highest_cost(target: EndpointTarget, request: CompletionRequest) -> Decimal:
    """Return US dollars for a high estimate of the prompt's tokens and for the longest answer that is allowed."""
    params = {**target.params, **request.params}
    limit = params.get("max_completion_tokens") or params.get("max_tokens", MOST_TOKENS_OUT)
    tokens_out = 0 if request.embed else limit if isinstance(limit, int) else MOST_TOKENS_OUT
    size = sum(len(str(message.get("content") or "").encode(errors="replace")) for message in request.messages)
    tokens_in = size // BYTES_PER_TOKEN + TOKENS_PER_MESSAGE * len(request.messages)
    return (((target.price_in or 0) * Decimal(tokens_in) + (target.price_out or 0) * tokens_out) / MILLION).quantize(
        PLACES
    )
