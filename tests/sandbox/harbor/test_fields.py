"""Every field of Harbor's `task.toml` is kept as it is, and those that a machine may lack are named."""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sandbox.harbor.task_folder import read_task
from tests.parts import harbor
from tests.sandbox.harbor.tasks import task_files

# A value for each field of Harbor 0.26, but those that exclude another one.
MACHINE = """
network_mode = "allowlist"
allowed_hosts = ["example.org"]
build_timeout_sec = 60.0
docker_image = "acme/machine:1"
os = "linux"
cpus = 0.5
memory_mb = 256
storage_mb = 512
gpus = 1
gpu_types = ["H100"]
skills_dir = "/skills"
workdir = "/app"
allow_internet = true
tpu = { type = "v6e", topology = "2x2" }
env = { A = "${A_VALUE}" }
mcp_servers = [
    { name = "a", transport = "stdio", command = "serve", args = ["-x"] },
    { name = "b", transport = "http", url = "http://tools/mcp", headers = { Authorization = "Bearer ${B_TOKEN}" } },
]
[{section}.healthcheck]
command = "true"
interval_sec = 1.0
timeout_sec = 2.0
start_period_sec = 3.0
start_interval_sec = 4.0
retries = 5
"""
VERIFIER = """
timeout_sec = 30.0
user = "root"
network_mode = "allowlist"
allowed_hosts = ["10.0.0.0/8"]
environment_mode = "separate"
env = { C = "${C_VALUE:-none}" }
collect = [{ command = "dump", service = "db", timeout_sec = 5.0, user = 0 }]
"""
ARTIFACTS = """
artifacts = ["/app/out", { source = "/data", destination = "data", exclude = ["*.tmp"], service = "db" }]
"""
DOCUMENT = f"""
schema_version = "1.4"
source = "acme"
multi_step_reward_strategy = "final"
{ARTIFACTS}
[task]
name = "acme/all"
version = "2"
description = "All fields"
authors = [{{ name = "Ada", email = "ada@example.org" }}]
keywords = ["a"]
[metadata]
level = "hard"
[agent]
timeout_sec = 60.0
user = "agent"
network_mode = "allowlist"
allowed_hosts = ["example.org"]
[solution]
env = {{ D = "${{D_VALUE}}" }}
[environment]
{MACHINE.replace("{section}", "environment")}
[verifier]
{VERIFIER}
[verifier.environment]
{MACHINE.replace("{section}", "verifier.environment")}
[[steps]]
name = "only"
min_reward = 0.5
{ARTIFACTS}
[steps.healthcheck]
command = "true"
interval_sec = 1.0
timeout_sec = 2.0
start_period_sec = 3.0
start_interval_sec = 4.0
retries = 5
[steps.agent]
timeout_sec = 10.0
[steps.verifier]
timeout_sec = 20.0
"""
WALK = """
import json, sys, tomllib
from harbor.models.task.config import TaskConfig
TaskConfig.model_validate(tomllib.loads(sys.stdin.read()))
print(json.dumps(TaskConfig.model_json_schema()))
"""
FILES: dict[str, Any] = {"instruction_md": None, "steps__only__instruction_md": "Do.", "tests__test_sh": None}


def test_a_copy_keeps_every_field_and_says_what_a_machine_must_have() -> None:
    task = read_task(task_files(task_toml=DOCUMENT, **FILES))
    copy = task.changed({}, task={"name": "acme/copy"})

    document = tomllib.loads(DOCUMENT)
    document["task"]["name"] = "acme/copy"
    assert tomllib.loads(copy.files["task.toml"].data.decode()) == document
    assert (task.is_separate, task.carried_of("only")) == (True, ("/logs/artifacts", "/app/out", "/app/out"))
    assert task.not_run_here() == [
        "It needs a GPU.",
        "It needs a TPU.",
        "It limits the network to a list of hosts.",
        "It needs variables of the machine that runs it: A_VALUE, B_TOKEN, D_VALUE.",
    ]


@pytest.mark.slow
def test_the_document_has_all_fields_of_harbor() -> None:
    python = Path(harbor()).with_name("python")
    found = subprocess.run([python, "-c", WALK], input=DOCUMENT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    schema = json.loads(found.stdout)
    assert sorted(set(_fields(schema, schema)) - set(_keys(tomllib.loads(DOCUMENT)))) == []


def _fields(schema: dict[str, Any], node: Any, path: str = "", depth: int = 0) -> list[str]:
    """The paths of the fields below a node; those of a list have the path of the list."""
    if isinstance(node, list):
        return [found for one in node for found in _fields(schema, one, path, depth)]
    if not isinstance(node, dict) or depth > 12:
        return []
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    found = []
    for name, inner in node.get("properties", {}).items():
        # Steps have the tables of the task.
        if not path.startswith(("steps.agent.", "steps.verifier.")):
            found += [f"{path}{name}", *_fields(schema, inner, f"{path}{name}.", depth + 1)]
    for key in ("anyOf", "items"):
        found += _fields(schema, node.get(key), path, depth + 1)
    return found


def _keys(value: Any, path: str = "") -> list[str]:
    if isinstance(value, list):
        return [found for one in value for found in _keys(one, path)]
    if not isinstance(value, dict):
        return []
    return [found for name, inner in value.items() for found in (f"{path}{name}", *_keys(inner, f"{path}{name}."))]
