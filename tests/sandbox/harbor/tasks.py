"""Harbor tasks of our own for tests."""

from collections.abc import Mapping

from sandbox.harbor.task_folder import TaskFile
from tests.parts import HARBOR_IMAGE

TOML = """\
schema_version = "1.4"

[task]
name = "acme/greet"
description = "Write a greeting"

[verifier]
timeout_sec = 60.0
environment_mode = "shared"

[agent]
timeout_sec = 60.0

[environment]
cpus = 1
memory_mb = 256
"""
DOCKERFILE = f"FROM {HARBOR_IMAGE}\nWORKDIR /app\n"


def verdict(condition: str) -> str:
    """A test script that rewards when the shell condition holds."""
    return (
        "#!/bin/bash\nmkdir -p /logs/verifier\n"
        f"if {condition}; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi\n"
    )


def named(name: str, toml: str = TOML) -> str:
    return toml.replace("acme/greet", f"acme/{name}")


def task_files(name: str = "greet", **files: str | None) -> dict[str, TaskFile]:
    """The files of a small task; keyword `tests__test_sh` is the file `tests/test.sh`, None leaves it out."""
    texts: Mapping[str, str | None] = {
        "task.toml": named(name),
        "instruction.md": "Write `hello world` to the file `greeting.txt`.\n",
        "environment/Dockerfile": DOCKERFILE,
        "solution/solve.sh": "#!/bin/bash\necho 'hello world' > greeting.txt\n",
        "tests/test.sh": verdict('[ "$(cat /app/greeting.txt)" = "hello world" ]'),
        **{_path(key): text for key, text in files.items()},
    }
    return {
        path: TaskFile(text.encode(), 0o755 if text.startswith("#!") else 0o644)
        for path, text in texts.items()
        if text is not None
    }


def _path(key: str) -> str:
    path = key.replace("__", "/")
    return f"{path.rpartition('_')[0]}.{path.rpartition('_')[2]}" if "_" in path.rsplit("/", 1)[-1] else path
