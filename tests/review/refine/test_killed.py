"""A refine run whose worker is killed with SIGKILL in each of its stages of model calls."""

import os
import signal
import time
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.db import connections
from django.utils import timezone

from curation.llm.client.completion import Completion, CompletionRequest, EndpointTarget
from curation.review.models import Revision, Suggestion, TextScore
from curation.runs.engine import event_loop, llm_stage
from curation.runs.engine.reap import reap_all
from curation.runs.engine.worker import drive
from curation.runs.models import Call, CallStatus, Item, ItemState, Run
from tests.driving import (
    end,
    storage,  # noqa: F401 - a fixture of every test here
)
from tests.duels.conftest import models  # noqa: F401 - a fixture
from tests.duels.running import CHALLENGER, JUDGES, KING, Models, start
from tests.factories import make_duel, make_endpoint, make_project
from tests.review.refine.test_refine import BETTER, likes

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
SAMPLES = 3
READINGS = SAMPLES * len(JUDGES) * 2 * 2  # against king and parent, in both orders
# The worker dies when this many answers have arrived: among the improvements, and twice among the readings.
KILLED_AT = (2, 12, 25)


def killed(run: Run, models: Models, answered: Path, *, at: int) -> None:  # noqa: F811
    """Work on the run in a process that kills itself at its first answer after `at` of them, then let its lease end."""
    connections.close_all()  # a child must not inherit an open connection
    child = os.fork()
    if child == 0:
        complete = models.complete

        async def complete_or_die(target: EndpointTarget, request: CompletionRequest) -> Completion:
            said = await complete(target, request)
            with answered.open("a") as file:
                print(target.name, file=file)
            if len(answered.read_text().splitlines()) > at:
                os.kill(os.getpid(), signal.SIGKILL)
            return said

        models.complete = complete_or_die  # type: ignore[method-assign]
        event_loop._loops.clear()  # its thread stayed in the parent
        for _ in range(5):
            drive(run.pk)
        os._exit(0)
    deadline = time.monotonic() + 60
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.02)
    assert os.WIFSIGNALED(ended[1]) and time.monotonic() < deadline, f"the worker ended by itself: {ended[1]}"
    claimed = Item.objects.filter(run=run, state=ItemState.CLAIMED)
    assert claimed.update(lease_until=timezone.now() - timedelta(seconds=1)), "it had work in progress"
    reap_all()


def test_every_suggestion_is_written_and_judged_once(
    models: Models,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def import_no_client(targets: object) -> None:
        """Each process would import LiteLLM, which the test's models do not need."""

    monkeypatch.setattr(llm_stage, "warm_up", import_no_client)
    project = make_project(settings_json={"panel": {"judges": list(JUDGES)}})
    for name in ("teacher", *JUDGES):
        make_endpoint(project, name, model=f"fake/{name}", price_in="2.0", price_out="4.0")
    models.says["teacher"] = lambda request: BETTER
    models.says |= dict.fromkeys(JUDGES, likes("IMPROVED", "CHALLENGER", "KING"))
    for _ in range(SAMPLES):
        make_duel(project, king=KING, challenger=CHALLENGER, bucket="refined")
    run = start(project, "refine", model="teacher")
    answered = tmp_path / "answered"
    answered.touch()

    for at in KILLED_AT:
        killed(run, models, answered, at=at)
    run = end(run)

    assert (run.state, run.error, run.items_failed) == ("succeeded", "", 0)
    assert run.result["better"] == SAMPLES
    assert Suggestion.objects.count() == Revision.objects.count() == SAMPLES
    assert set(Revision.objects.values_list("number", flat=True)) == {1}
    scores = TextScore.objects.all()
    assert scores.count() == 2 * SAMPLES
    for score in scores:
        assert len({(row["judge"], row["order"]) for row in score.readings}) == len(score.readings) == 2 * len(JUDGES)
    calls = Call.objects.filter(run=run)
    assert calls.filter(status=CallStatus.OK).count() == SAMPLES + READINGS, "no answer that was recorded is paid twice"
    lost = calls.filter(status=CallStatus.LOST).count()
    assert lost >= len(KILLED_AT)
    assert run.cost_unknown_calls == lost and run.calls == SAMPLES + READINGS + lost
    assert run.cost == sum((call.cost for call in calls if call.cost is not None), Decimal(0)) > 0
