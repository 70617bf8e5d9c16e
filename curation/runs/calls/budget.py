"""A run's budget: each call reserves the most it can cost before it leaves, in the transaction that records it.

All workers see each other's reservations, because they are rows. A call of unknown cost (timed out, lost with its
worker) goes on counting as the most it could have cost. So a run stays within its budget but for what its calls' real
prompts have more tokens than estimated here.
"""

from decimal import Decimal

from django.db.models import Sum

from curation.llm.client.completion import Request, Target
from curation.llm.client.pricing import MILLION, PLACES
from curation.runs.models import Call, CallStatus, Run

MOST_TOKENS_OUT = 4096
# Bytes of UTF-8 per token and tokens around a message: what tokenizers hardly ever fall short of.
BYTES_PER_TOKEN, TOKENS_PER_MESSAGE = 3, 8


class BudgetSpent(Exception):
    """What is left does not pay for one more call."""


class BudgetHeld(Exception):
    """What is left does not pay for one more call while the calls under way may still need it."""


def reserve_cost(run_id: int, target: Target, request: Request) -> Decimal | BudgetHeld | BudgetSpent | None:
    """The most the call can cost, to be written with its row; None in a run without a budget. Needs a transaction.

    Where that is more than is left, the exception for it, not raised: it is no reason to undo what others write.
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


def highest_cost(target: Target, request: Request) -> Decimal:
    """US dollars: a high estimate of the prompt's tokens and as many as the call may answer with."""
    params = {**target.params, **request.params}
    limit = params.get("max_tokens", params.get("max_completion_tokens", MOST_TOKENS_OUT))
    tokens_out = limit if isinstance(limit, int) else MOST_TOKENS_OUT
    size = sum(len(str(message.get("content") or "").encode(errors="replace")) for message in request.messages)
    tokens_in = size // BYTES_PER_TOKEN + TOKENS_PER_MESSAGE * len(request.messages)
    return (((target.price_in or 0) * Decimal(tokens_in) + (target.price_out or 0) * tokens_out) / MILLION).quantize(
        PLACES
    )
