import pytest

from curation.scenarios.models import TRIED, Scenario
from curation.trajectories.models import StepAdvantage, Trajectory
from curation.web.problems import Invalid
from tests.factories import COMMANDS, make_run, make_step_value, make_trajectory
from tests.sandbox.fake import FakeBackend, FakeSession
from tests.trajectories.rolling import Operators, make_stage, run_to_end, start

pytestmark = pytest.mark.django_db(transaction=True)


def with_useless_step() -> Trajectory:
    """One that looks around at its third step, of which a probe has found that it changes nothing."""
    project = make_stage()
    row = make_trajectory(
        project,
        commands=(*COMMANDS[:2], "ls", COMMANDS[2]),
        outputs=("usage: todo\n", 'write "hello world" to greeting.txt in your home\n', "", ""),
    )
    probe = make_run(project, "probe")
    values = [make_step_value(row, at, probe, solved=8, rollouts=8) for at in range(5)]
    for value, before in zip(values[1:], values, strict=False):
        verdict, unchanged = ("alike", True) if value.at == 3 else ("open", value.at < 3)
        StepAdvantage.objects.create(value=value, against=before, verdict=verdict, unchanged=unchanged)
    return row


def test_a_session_without_its_useless_steps_is_recorded_if_it_still_solves(
    operators: Operators, rooms: FakeBackend
) -> None:
    row = with_useless_step()
    run = run_to_end(row.project, "shorten")
    found = Trajectory.objects.with_text().get(run=run)
    assert [step["message"] for step in found.text.steps[1:]] == [*COMMANDS, "exit"]
    assert (found.outcome, found.keep, found.shortened_from_id, found.model) == ("solved", True, row.pk, row.model)
    assert found.sample is not None and found.sample.status == "pending"
    assert found.text.exchange == []
    assert run.result == {"solved": 1, "not_solved": 0, "cut": 1}
    assert not operators.asked
    # Nobody played the shorter one.
    assert Scenario.objects.annotate(tried=TRIED).values_list("tried", flat=True).get() == 1


def test_a_session_that_needs_the_step_is_left_as_it_was(operators: Operators, rooms: FakeBackend) -> None:
    def needs_look(session: FakeSession) -> bool:
        return "ls" in session.commands

    row = with_useless_step()
    rooms.passes = needs_look
    run = run_to_end(row.project, "shorten")
    assert run.result == {"solved": 0, "not_solved": 1, "cut": 0}
    assert Trajectory.objects.get() == row


def test_a_run_without_a_useless_step_is_refused(rooms: FakeBackend) -> None:
    project = make_stage()
    make_trajectory(project)
    with pytest.raises(Invalid, match="found useless"):
        start(project, "shorten")
