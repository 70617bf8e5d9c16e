import pytest
from django.template.loader import render_to_string

from curation.runs.kinds import kind_of
from curation.trajectories.models import Replay, Trajectory
from curation.trajectories.pages.run_section import replay_section
from curation.web.problems import Invalid
from sandbox.errors import SandboxFailed
from tests.factories import make_scenario, make_trajectory
from tests.sandbox.fake import FakeBackend
from tests.trajectories.rolling import Operators, make_stage, run_to_end, start

pytestmark = pytest.mark.django_db(transaction=True)


def rolled() -> Trajectory:
    project = make_stage()
    make_scenario(project)
    run_to_end(project)
    return Trajectory.objects.select_related("project", "sample").get()


def test_a_replay_with_the_same_outputs_agrees(operators: Operators, rooms: FakeBackend) -> None:
    row = rolled()
    asked = len(operators.asked)
    run = run_to_end(row.project, "replay")
    row.refresh_from_db()
    assert row.replay == "agrees"
    replay = Replay.objects.get()
    assert (replay.agrees, replay.differences, replay.backend, replay.run) == (True, [], "fake", run)
    assert run.result == {"agree": 1, "differ": 0, "skipped": {}}
    assert len(operators.asked) == asked  # no model is asked
    assert rooms.sessions[1].commands == rooms.sessions[0].commands
    assert rooms.sessions[1].terminal == "exit"
    assert all(session.closed for session in rooms.sessions)


def test_a_replay_that_differs_is_marked_and_reviewed_sooner(operators: Operators, rooms: FakeBackend) -> None:
    row = rolled()
    assert row.sample is not None
    before = row.sample.priority
    rooms.answers = lambda session, command: "something else\n"
    run = run_to_end(row.project, "replay", filter={"id": str(row.pk)})
    row.refresh_from_db()
    assert (row.replay, run.result["differ"]) == ("differs", 1)
    first = Replay.objects.get().differences[0]
    assert (first["turn"], first["what"]) == (2, "output")
    assert first["recorded"].startswith("usage: todo")
    assert first["replayed"].startswith("something else")
    row.sample.refresh_from_db()
    assert row.sample.priority == -20.0 < before


def test_a_trajectory_that_cannot_be_compared_is_skipped_with_a_reason(
    operators: Operators, rooms: FakeBackend
) -> None:
    row = rolled()
    make_trajectory(row.project, row.scenario, outcome="infra_error")
    make_trajectory(row.project, row.scenario, bundle_sha256="0" * 64)
    run = run_to_end(row.project, "replay")
    assert (run.items_done, run.items_skipped) == (1, 2)
    assert sorted(run.result["skipped"].values()) == [1, 1]
    assert kind_of("replay").conclude(run) == "1 of 1 replay agrees with the record. 2 trajectories were not replayed."
    row.delete()
    nothing = run_to_end(row.project, "replay")
    assert kind_of("replay").conclude(nothing) == "2 trajectories were not replayed."
    shown = render_to_string("trajectories/replay/_run_section.html", replay_section(nothing))
    assert "agree" not in shown and "1 trajectory skipped: its " in shown


def test_a_broken_sandbox_does_not_mark_the_trajectory(operators: Operators, rooms: FakeBackend) -> None:
    row = rolled()
    rooms.answers = lambda session, command: SandboxFailed("went away")
    run = run_to_end(row.project, "replay")
    row.refresh_from_db()
    assert (row.replay, run.state) == ("", "failed")
    assert "not compared, because the sandbox failed" in run.error


def test_a_replay_of_no_trajectories_is_refused(rooms: FakeBackend) -> None:
    with pytest.raises(Invalid, match="No trajectory matches"):
        start(make_stage(), "replay")
