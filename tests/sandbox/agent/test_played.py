"""Which task a server says it plays, in the forms that servers use, compared with a row."""

import pytest

from sandbox.agent.played import AskedTask, asked_task, compare_tasks, said_task

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
    assert compare_tasks(asked, said_task(said)) == is_


def test_an_id_beside_another_text_is_not_confirmed() -> None:
    """A server may repeat the id that it was sent and play something else."""
    asked = asked_task({"task_id": 3}, task_id="3", tier="", prompt="TASK: Close the bucket.")
    assert compare_tasks(asked, said_task({"task_id": 3, "task": "List the queues."})) == "unconfirmed"


def test_a_row_with_two_tasks_is_played_by_nobody() -> None:
    asked = asked_task({"task_id": 37, "task": TASK}, task_id="37", tier="expert", prompt="")
    assert compare_tasks(asked, said_task({"task": TASK})) == "mismatch"
