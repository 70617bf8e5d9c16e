import pytest

from sandbox.agent.action import Ending
from sandbox.agent.replay import RecordedTrajectory, ReplayVerdict, run_replay, without_clock
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
