"""A probe in a real sandbox: the state that rollouts go on from is the one that was recorded."""

from pathlib import Path

import pytest
from pytest_django import Settings

from curation.llm.client.completion import CompletionRequest
from curation.trajectories.models import StateTrace, StepAdvantage, StepValue, Trajectory
from tests.factories import make_scenario
from tests.trajectories.rolling import Operators, make_stage, run_to_end

pytestmark = pytest.mark.django_db(transaction=True)
BACKENDS = [pytest.param("bubblewrap", marks=pytest.mark.bubblewrap), pytest.param("docker", marks=pytest.mark.docker)]
# The name is in a variable, the folder is another one, and a look around changes nothing.
WAY = ("todo", "W=world; export W; cd /tmp", "ls", 'cd; echo "hello $W" > greeting.txt', "exit")
LOST = (*WAY[:3], "unset W", *WAY[3:])


def operates(request: CompletionRequest) -> str:
    """The first episode is right, the second one forgets the name; rollouts that go on take the right way."""
    said = sum(message["role"] == "assistant" for message in request.messages)
    way = LOST if request.sample_index == 1 or "unset W" in str(request.messages) else WAY
    return way[said]


@pytest.mark.parametrize("sandbox", BACKENDS)
def test_rollouts_go_on_from_the_rebuilt_state(
    operators: Operators, settings: Settings, tmp_path: Path, sandbox: str
) -> None:
    settings.SANDBOX, settings.WINNOW_DATA = sandbox, tmp_path
    project = make_stage()
    make_scenario(project)
    operators.scripts["operator-a"] = operates
    run_to_end(project, samples=2)
    kept, lost = Trajectory.objects.order_by("sample_index")
    assert (kept.keep, lost.outcome) == (True, "checker_failed")
    assert len(set(StateTrace.objects.values_list("trajectory", flat=True))) == 0

    operators.scripts["operator-a"] = lambda request: (LOST if "unset W" in str(request.messages) else WAY)[
        sum(message["role"] == "assistant" for message in request.messages)
    ]
    run = run_to_end(project, "probe", model="operator-a", samples=8, rounds=1)
    found = StepAdvantage.objects.select_related("value", "against").get()
    assert (found.value.at, found.verdict) == (4, "better")
    assert (found.value.solved, found.value.rollouts, found.against.solved, found.against.rollouts) == (8, 8, 0, 8)
    assert run.result["differ"] == 0
    states = kept.trace.states
    assert states[2] == states[3] != states[1]  # `ls` changed nothing, `cd` and `export` did
    assert lost.trace.keys[:4] == kept.trace.keys[:4]
    assert lost.trace.states[4] != kept.trace.states[4]

    run_to_end(project, "probe", model="operator-a", samples=2, rounds=1, steps="all", filter={"id": str(kept.pk)})
    unchanged = StepAdvantage.objects.filter(unchanged=True, value__trajectory=kept).values_list("value__at", flat=True)
    assert 3 in unchanged
    assert StepValue.objects.newest_of(kept.pk).count() == 6
