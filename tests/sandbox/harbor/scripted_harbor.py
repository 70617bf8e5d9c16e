"""A scripted Harbor: a command that writes the folders of a job as the real one does, and resumes them by its rules.

Run as `python scripted_harbor.py run -c config.json -y`. A task's folder may have `script.json`, with lists by attempt,
the last entry for all others: `rewards` (null for none), `exceptions` (types), `seconds`, `costs`. An exception with a
number, such as `EnvironmentStartTimeoutError*2`, ends the first two trials of the task, counted in its folder.
"""

import argparse
import json
import os
import shutil
import signal
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]
# Some of those that Harbor 0.26 writes into a job's configuration.
LASTING = ["AgentTimeoutError", "CancelledError", "NonZeroAgentExitCodeError", "VerifierTimeoutError"]


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        print("0.26.0")
        return
    if sys.argv[1] == "lint":
        print("[]")
        return
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("-c", type=Path, required=True)
    run.add_argument("-y", action="store_true")
    resume = commands.add_parser("job").add_subparsers(required=True).add_parser("resume")
    resume.add_argument("-p", type=Path, required=True)
    resume.add_argument("-f", action="append", default=[])
    given = parser.parse_args()
    if given.command == "run":
        config = json.loads(given.c.read_text())
        job = Path(config["jobs_dir"]) / config["job_name"]
    else:
        job = given.p
        for folder in trials_of(job):
            raised = (read(folder / "result.json") or {}).get("exception_info") or {}
            if raised.get("exception_type") in given.f:
                shutil.rmtree(folder)
        # As Harbor does: a file that was cut off is an error.
        config = json.loads((job / "config.json").read_text())
    run_job(job, config)


def run_job(job: Path, config: Json) -> None:
    job.mkdir(parents=True, exist_ok=True)
    before = job / "result.json"
    identity = json.loads(before.read_text())["id"] if before.exists() else str(uuid.uuid4())
    left = planned(config)
    done: list[Json] = []
    if (job / "config.json").exists():
        assert json.loads((job / "config.json").read_text())["tasks"] == config["tasks"]
        for folder in trials_of(job):
            result = read(folder / "result.json")
            if not (folder / "result.json").exists():
                shutil.rmtree(folder)
            elif result is not None:
                left.remove([result["config"]["task"]["path"], result["config"]["agent"]])
                done.append(result)
    if (job / "lock.json").exists():
        json.loads((job / "lock.json").read_text())
    total = len(left) + len(done)
    config.setdefault("retry", {})["exclude_exceptions"] = LASTING
    (job / "config.json").write_text(json.dumps(config))
    (job / "lock.json").write_text(json.dumps({"trials": total}))
    print(f"Running {len(left)} trials", flush=True)

    def write(finished: bool) -> None:
        stats = {"n_completed_trials": len(done)}
        text = {"id": identity, "n_total_trials": total, "stats": stats, "finished_at": now() if finished else None}
        (job / "result.json").write_text(json.dumps(text))

    write(finished=False)
    for path, agent in left:
        done.append(run_trial(job, identity, Path(path), agent))
        write(finished=False)
    write(finished=True)


def planned(config: Json) -> list[list[Any]]:
    """The task and the agent of each trial."""
    return [
        [task["path"], agent]
        for _ in range(config["n_attempts"])
        for task in config["tasks"]
        for agent in config["agents"]
    ]


def run_trial(job: Path, identity: str, task: Path, agent: Json) -> Json:
    count = task / f".trials-{job.parent.name}"
    number = int(count.read_text()) if count.exists() else 0
    count.write_text(str(number + 1))
    script = read(task / "script.json") or {}

    def of_script(name: str, default: Any) -> Any:
        given = script.get(name, [default])
        return given[min(number, len(given) - 1)]

    folder = job / f"{task.name[:32]}__{uuid.uuid4().hex[:7]}"
    for part in ("agent", "verifier", "artifacts"):
        (folder / part).mkdir(parents=True)
    config = {"task": {"path": str(task)}, "trial_name": folder.name, "agent": agent, "job_id": identity}
    (folder / "config.json").write_text(json.dumps(config))
    exception, reward, started = of_script("exceptions", None), of_script("rewards", 1.0), now()
    if exception and "*" in exception:
        exception, _, most = exception.partition("*")
        exception = exception if number < int(most) else None
    try:
        time.sleep(of_script("seconds", 0.01))
    except KeyboardInterrupt:
        exception = "CancelledError"
    if exception is not None and exception != "AgentTimeoutError":
        reward = None
    model = agent.get("model_name", "")
    tokens_in, tokens_out = of_script("tokens", [1000, 100])
    result = {
        "id": str(uuid.uuid4()),
        "task_name": f"acme/{task.name}",
        "trial_name": folder.name,
        "config": config,
        "agent_info": {"name": agent["name"], "version": "1.0", "model_info": {"name": model.rpartition("/")[2]}},
        "agent_result": {
            "n_input_tokens": tokens_in,
            "n_output_tokens": tokens_out,
            "cost_usd": of_script("costs", 0.25),
        },
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        "exception_info": exception and {"exception_type": exception, "exception_message": "as scripted"},
        "reward_valid": reward is not None,
        "started_at": started,
        "finished_at": now(),
    }
    if agent["name"] not in ("oracle", "nop"):
        (folder / "agent" / "trajectory.json").write_text(json.dumps(trajectory(folder.name, agent)))
    (folder / "verifier" / "test-stdout.txt").write_text(f"reward {reward}\n")
    (folder / "result.json").write_text(json.dumps(result))
    if exception == "CancelledError":
        raise KeyboardInterrupt
    return result


def trajectory(name: str, agent: Json) -> Json:
    call = {"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": f"echo {name}"}}
    steps = [
        {"step_id": 1, "source": "user", "message": "Say your name."},
        {
            "step_id": 2,
            "source": "agent",
            "message": "I say it.",
            "tool_calls": [call],
            "observation": {"results": [{"source_call_id": "c1", "content": name}]},
        },
    ]
    described = {"name": agent["name"], "version": "1.0", "model_name": agent.get("model_name", "")}
    return {"schema_version": "ATIF-v1.8", "session_id": name, "agent": described, "steps": steps}


def trials_of(job: Path) -> Iterator[Path]:
    return (path for path in sorted(job.iterdir()) if path.is_dir())


def read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None


def now() -> str:
    return datetime.now(UTC).isoformat()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
    except KeyboardInterrupt:
        os._exit(130)
