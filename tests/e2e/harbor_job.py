"""A small Harbor job: one attempt at a task that its verifier rewarded, and one that it did not."""

import json
from io import BytesIO
from typing import Any
from zipfile import ZipFile

TASK = "Write the sum of the orders of each customer to /app/sums.csv."
SOLVES = "awk -F, '{sum[$1] += $2} END {for (one in sum) print one, sum[one]}' orders.csv > sums.csv"


def trial(number: int, command: str, reward: float) -> dict[str, str]:
    """The files of a Harbor trial: an agent looks at the orders, and writes the sums or something else."""
    name, steps = f"sum-orders__{number}", [("user", TASK), ("cat orders.csv", "ada,3\nbo,4\nada,5\n"), (command, "")]
    written: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": TASK}]
    for place, (typed, shown) in enumerate(steps[1:], 2):
        call = {"tool_call_id": f"c{place}", "function_name": "bash", "arguments": {"command": typed}}
        observed: dict[str, Any] = {"results": [{"source_call_id": f"c{place}", "content": shown}]}
        step = {
            "step_id": place,
            "source": "agent",
            "message": "I look.",
            "tool_calls": [call],
            "observation": observed,
        }
        written.append(step)
    agent = {"name": "terminus-2", "version": "2.0.0"}
    document = {"schema_version": "ATIF-v1.8", "session_id": name, "agent": agent, "steps": written}
    config = {"task": {"path": "tasks/sum-orders"}, "trial_name": name, "agent": {"name": "terminus-2"}}
    result: dict[str, Any] = {
        "id": f"00000000-0000-4000-8000-00000000000{number}",
        "task_name": "acme/sum-orders",
        "trial_name": name,
        "config": config,
        "agent_info": agent,
        "verifier_result": {"rewards": {"reward": reward}},
        "exception_info": None,
    }
    files = {"result.json": result, "config.json": config, "agent/trajectory.json": document}
    return {f"job/{name}/{path}": json.dumps(value) for path, value in files.items()}


def job() -> bytes:
    packed = BytesIO()
    with ZipFile(packed, "w") as archive:
        for number, (command, reward) in enumerate([(SOLVES, 1.0), ("cp orders.csv sums.csv", 0.0)], 1):
            for name, text in trial(number, command, reward).items():
                archive.writestr(name, text)
    return packed.getvalue()
