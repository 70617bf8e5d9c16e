"""A Harbor whose trials are bubblewrap sandboxes: `lint`, the agents `oracle`, `nop` and one that asks a model once.

Run as Harbor's command, without Docker. The model is that of the job's configuration, at its `base_url`.
"""

import json
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Any

import httpx

from tests.sandbox.harbor import scripted_harbor
from tests.sandbox.harbor.room import Room

Json = dict[str, Any]
END = "-- end of output --\n"  # of one command


def run_trial(job: Path, identity: str, task: Path, agent: Json) -> Json:
    folder = job / f"{task.name[:32]}__{uuid.uuid4().hex[:7]}"
    folder.mkdir()
    config = {"task": {"path": str(task)}, "trial_name": folder.name, "agent": agent, "job_id": identity}
    (folder / "config.json").write_text(json.dumps(config))
    with tempfile.TemporaryDirectory() as scratch:
        copy, started = Path(scratch, "task"), scripted_harbor.now()
        shutil.copytree(task, copy)
        played = agent["name"]
        if agent.get("model_name"):
            played, said = "oracle", asked(agent, (task / "instruction.md").read_text())
            typed = [one["keystrokes"].rstrip("\n") for one in said["commands"]]
            (copy / "solution/solve.sh").write_text(
                "".join(["#!/bin/bash\n", *(f"{one}\necho '{END.strip()}'\n" for one in typed)])
            )
        ended = Room(Path(scratch, "room"))._trial(task.name, copy, played)
        for name, text in {"agent/oracle.txt": ended.said, "verifier/test-stdout.txt": ended.printed}.items():
            (folder / name).parent.mkdir(parents=True)
            (folder / name).write_text(text)
        shutil.copytree(ended.artifacts(), folder / "artifacts/logs/artifacts")
    if agent.get("model_name"):
        document = session(folder.name, agent, (task / "instruction.md").read_text(), typed, ended.said.split(END))
        (folder / "agent/trajectory.json").write_text(json.dumps(document))
    result = {
        "id": str(uuid.uuid4()),
        "task_name": name_of(task),
        "trial_name": folder.name,
        "config": config,
        "agent_info": {"name": agent["name"], "version": "1.0"},
        "agent_result": {"n_input_tokens": 1000, "n_output_tokens": 100},
        "verifier_result": None if ended.reward is None else {"rewards": {"reward": ended.reward}},
        "exception_info": None,
        "reward_valid": ended.reward is not None,
        "started_at": started,
        "finished_at": scripted_harbor.now(),
    }
    (folder / "result.json").write_text(json.dumps(result))
    return result


def asked(agent: Json, instruction: str) -> Json:
    body = {"model": agent["model_name"].partition("/")[2], "messages": [{"role": "user", "content": instruction}]}
    answer = httpx.post(f"{agent['base_url']}/chat/completions", json=body, trust_env=False).raise_for_status().json()
    found: Json = json.loads(answer["choices"][0]["message"]["content"])
    return found


def session(name: str, agent: Json, instruction: str, typed: list[str], printed: list[str]) -> Json:
    steps: list[Json] = [{"step_id": 1, "source": "user", "message": instruction}]
    for number, (command, output) in enumerate(zip(typed, printed, strict=False), 1):
        call = {"tool_call_id": f"c{number}", "function_name": "bash", "arguments": {"command": command}}
        results = [{"source_call_id": f"c{number}", "content": output}]
        step = {"source": "agent", "message": "I work.", "tool_calls": [call], "observation": {"results": results}}
        steps.append({"step_id": number + 1, **step})
    described = {"name": agent["name"], "version": "1.0", "model_name": agent["model_name"]}
    return {"schema_version": "ATIF-v1.8", "session_id": name, "agent": described, "steps": steps}


def name_of(task: Path) -> str:
    lines = (task / "task.toml").read_text().splitlines()
    return next(line.partition('"')[2].rstrip('"') for line in lines if line.startswith("name = "))


if __name__ == "__main__":
    scripted_harbor.run_trial = run_trial
    scripted_harbor.main()
