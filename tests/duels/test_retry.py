"""A run whose failed items were retried reports all of its work, not only the part that was retried."""

from typing import Any

import pytest

from curation.llm.client.completion import CompletionRequest
from curation.llm.client.errors import Refused
from curation.runs.control import retry_failed
from curation.runs.models import Call, Item, Run
from tests.driving import end
from tests.duels.running import Models, default_reply, make_arena, run_to_end
from tests.sampled import one_of

pytestmark = pytest.mark.django_db(transaction=True)
COUNTED = ("items_total", "items_done", "items_failed", "items_skipped", "tokens_in", "tokens_out", "cost")


def figures(run: Run) -> dict[str, Any]:
    run.refresh_from_db()
    run.result.pop("costs")  # a refused call is a call, and costs nothing
    spent = ("calls", "cost", "cost_known", "cost_unknown_calls")
    judges = [{**judge, **dict.fromkeys(spent)} for judge in run.result.pop("judges")]
    return {name: getattr(run, name) for name in COUNTED} | {"result": run.result, "judges": judges}


@pytest.mark.parametrize("fresh", one_of(2, [False, True]))
@pytest.mark.parametrize("side", ["king", "challenger", "judge-b"])
def test_retried_duels_report_what_a_run_without_failures_reports(models: Models, side: str, fresh: bool) -> None:
    project, _ = make_arena()
    whole = run_to_end(project, fresh=fresh)
    other, _ = make_arena()

    def refuse(request: CompletionRequest) -> Any:
        broken = "rounding error 2" in str(request.messages)
        return Refused("no such model") if broken else default_reply(side)(request)

    models.says[side] = refuse
    run = run_to_end(other, fresh=fresh)
    assert run.items_failed > 0
    del models.says[side]
    models.asked.clear()
    retry_failed(run=run, user=None)
    run = end(run)
    assert figures(run) == figures(whole)
    assert not Item.objects.filter(run=run, state="skipped").exists()
    # Nothing that had been answered was asked again.
    assert len(models.asked) == {"king": 1 + 6, "challenger": 1 + 6, "judge-b": 2}[side]
    assert Call.objects.filter(run=run, status="ok").count() == Call.objects.filter(run=whole, status="ok").count()
