"""A run's budget: each call reserves the most it can cost before it leaves, so that the budget is not overrun."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal

from curation.llm.completion import Request, Target
from curation.llm.pricing import MILLION
from curation.runs.group_commit import GroupCommit
from curation.runs.models import Run

MOST_TOKENS_OUT = 4096


class BudgetSpent(Exception):
    """What is left does not pay for one more call."""


class Budget:
    """The budget as one worker sees it: what all have spent (from the row) and what its own open calls may cost."""

    def __init__(self, run: Run, commit: GroupCommit) -> None:
        self.spent = False
        self._limit = run.budget
        self._run_id = run.pk
        self._commit = commit
        self._reserved = Decimal(0)

    @asynccontextmanager
    async def room_for(self, target: Target, request: Request, tokens_in: int) -> AsyncIterator[None]:
        """Holds the call's highest cost while it is open; raises `BudgetSpent` when no open call could still free it."""
        if self._limit is None:
            yield
            return
        most = _highest_cost(target, request, tokens_in)
        while await self._commit(self._cost) + self._reserved + most > self._limit:
            if self._reserved == 0:
                self.spent = True
                raise BudgetSpent
            await asyncio.sleep(0.1)
        self._reserved += most
        try:
            yield
        finally:
            self._reserved -= most

    def _cost(self) -> Decimal:
        return Run.objects.values_list("cost", flat=True).get(pk=self._run_id)


def _highest_cost(target: Target, request: Request, tokens_in: int) -> Decimal:
    """US dollars: the estimated prompt and as many tokens as the call may answer with."""
    params = {**target.params, **request.params}
    limit = params.get("max_tokens", params.get("max_completion_tokens", MOST_TOKENS_OUT))
    tokens_out = limit if isinstance(limit, int) else MOST_TOKENS_OUT
    return ((target.price_in or 0) * Decimal(tokens_in) + (target.price_out or 0) * Decimal(tokens_out)) / MILLION
