import pytest

from sandbox.agent.action import Ending
from sandbox.agent.replay import RecordedTrajectory, ReplayVerdict, run_replay, without_clock
from sandbox.agent.reported_task import AskedTask, asked_task, compare_tasks, reported_task
from sandbox.agent.shell_environment import ShellTask
from sandbox.errors import SandboxFailed
from sandbox.protocol import Setup
from tests.factories import make_turns
from tests.sandbox.fake import Answer, FakeBackend, ran

BANNER = "Work is announced by: todo"
OUTPUTS: dict[str, Answer] = {"ls": "NOTICE\n", "cat x": ran("cat: x: No such file\n", 1)}


def recorded(*outputs: str, passed: bool | None = True) -> RecordedTrajectory:
    turns = make_turns("ls", "cat x", outputs=outputs or ("NOTICE\n", "cat: x: No such file\n"))
    turns[4]["exit_code"] = 1
    return RecordedTrajectory(turns, Ending("exit"), passed)


def replay(given: RecordedTrajectory, rooms: FakeBackend, banner: str = BANNER) -> ReplayVerdict:
    task = ShellTask(Setup(banner=banner), "true", "exit")
    return run_replay(task=task, recorded=given, open_session=rooms.session, command_seconds=20)


def test_an_equal_replay_agrees() -> None:
    rooms = FakeBackend(OUTPUTS)
    assert replay(recorded(), rooms) == ReplayVerdict(())
    assert rooms.sessions[0].commands == ["ls", "cat x"]
    assert rooms.sessions[0].closed


def test_every_difference_names_its_turn() -> None:
    rooms = FakeBackend({**OUTPUTS, "cat x": "here\n"}, passes=lambda session: False)
    verdict = replay(recorded(), rooms, banner="Another day")
    assert not verdict.agrees
    assert [(difference.turn, difference.what) for difference in verdict.differences] == [
        (0, "orientation"),
        (4, "output"),
        (4, "exit code"),
        (5, "checker"),
    ]
    assert verdict.differences[-1].as_json() == {
        "turn": 5,
        "what": "checker",
        "recorded": "passed",
        "replayed": "failed",
    }


def test_times_are_no_difference() -> None:
    listing = "-rw-r--r-- 1 agent agent 12 Nov {} NOTICE\n"
    rooms = FakeBackend({**OUTPUTS, "ls": listing.format("21 14:52")})
    assert replay(recorded(listing.format(" 3 09:07"), "cat: x: No such file\n"), rooms).agrees


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Sat Nov 21 14:52:11 UTC 2026", "<time>"),
        ("2026-11-21T14:52:11.25Z done", "<time> done"),
        ("2026-11-21", "<time>"),
        ("10:30 left", "<time> left"),
        ("ratio 3:4, 120 bytes, port 8080", "ratio 3:4, 120 bytes, port 8080"),
    ],
)
def test_times_are_masked(text: str, masked: str) -> None:
    assert without_clock(text).strip() == masked


def test_a_checker_that_did_not_run_does_not_run_now() -> None:
    rooms = FakeBackend(OUTPUTS)
    assert replay(recorded(passed=None), rooms).agrees
    assert rooms.sessions[0].checker is None


def test_a_broken_sandbox_is_replaced_twice() -> None:
    broken = [SandboxFailed("gone")] * 2
    assert replay(recorded(), FakeBackend(OUTPUTS, opening=broken)).agrees
    with pytest.raises(SandboxFailed):
        replay(recorded(), FakeBackend(OUTPUTS, opening=[*broken, SandboxFailed("gone")]))


TASK = {"task_id": 3, "difficulty": "expert", "description": "Close the bucket."}
ROW = asked_task(
    {"task_id": "3", "task": TASK}, task_id="3", tier="expert", prompt="TASK: Close the bucket.\n\nStep: 0"
)
ID_ONLY = asked_task({"task_id": "3"}, task_id="3", tier="", prompt="")
TEXT_ONLY = asked_task({}, task_id="", tier="", prompt="Rules.\n\nTASK: Close the bucket.\nStep: 0")


@pytest.mark.parametrize(
    ("asked", "said", "is_"),
    [
        (ROW, {"task": TASK}, "confirmed"),
        (ROW, {"task": {**TASK, "task_id": "3"}}, "confirmed"),
        (ROW, {"info": {"task": {"id": 3.0, "instruction": " close  the bucket. "}}}, "confirmed"),
        (ROW, {"state": {"current_task": TASK}}, "confirmed"),
        (ROW, {"task": "Close the bucket."}, "confirmed"),
        (ROW, {"task": {**TASK, "task_id": 4}}, "mismatch"),
        (ROW, {"task": "List the queues."}, "mismatch"),
        (ROW, {"task": {**TASK, "difficulty": "warmup"}}, "mismatch"),
        (ROW, {"task": {**TASK, "difficulty": "hard"}}, "confirmed"),
        (ROW, {"task_id": 3, "state": {"current_task": {**TASK, "task_id": 5}}}, "mismatch"),
        (ROW, {"task_id": "3", "task": {"description": "List the queues."}}, "mismatch"),
        (ROW, {}, "unconfirmed"),
        (ROW, {"prompt": "$ ", "episode_id": "3", "tasks": [{"id": 4}], "previous_task": {"id": 9}}, "unconfirmed"),
        (ID_ONLY, {"task_id": "3"}, "confirmed"),
        (ID_ONLY, {"metadata": {"task": 3}}, "confirmed"),
        (ID_ONLY, {"metadata": {"task": 30}}, "mismatch"),
        (ID_ONLY, {"task": {"id": 0, "instance_id": "3"}}, "confirmed"),
        (ID_ONLY, {"task_id": True}, "unconfirmed"),
        (TEXT_ONLY, {"task": {"description": "Close the bucket."}}, "confirmed"),
        (TEXT_ONLY, {"task": "Close the bucket"}, "unconfirmed"),
        (AskedTask(known=False), {"task": TASK}, "seed"),
    ],
)
def test_what_a_server_says_is_compared_with_the_row(asked: AskedTask, said: dict[str, object], is_: str) -> None:
    assert compare_tasks(asked, reported_task(said)) == is_


def test_an_id_beside_another_text_is_not_confirmed() -> None:
    """A server may repeat the id that it was sent and play something else."""
    asked = asked_task({"task_id": 3}, task_id="3", tier="", prompt="TASK: Close the bucket.")
    assert compare_tasks(asked, reported_task({"task_id": 3, "task": "List the queues."})) == "unconfirmed"


def test_a_row_with_two_tasks_is_played_by_nobody() -> None:
    asked = asked_task({"task_id": 37, "task": TASK}, task_id="37", tier="expert", prompt="")
    assert compare_tasks(asked, reported_task({"task": TASK})) == "mismatch"
