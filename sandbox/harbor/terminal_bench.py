"""Tasks of Terminal-Bench's older layout, one folder with `task.yaml`, as files of a Harbor task.

The tests keep their script `run-tests.sh`; its exit code is the reward. A machine of several services, and keys that a
Dockerfile does not have, are refused by name: Harbor's own `harbor tasks migrate` converts some of these.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from sandbox.harbor.task_folder import (
    COMPOSE,
    CONFIG,
    DOCKERFILE,
    ENVIRONMENT,
    INSTRUCTION,
    MOST_VALUES,
    SCHEMAS,
    SOLUTION,
    TESTS,
    Files,
    TaskFile,
    TaskRefused,
    dump_toml,
    refuse_large,
    refuse_long,
)

M = TypeVar("M", bound=BaseModel)
TASK = "task.yaml"
# The last ones are PyYAML's for a value that is none of its tag, such as a date with a zone of 99 hours.
_NOT_YAML = (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError)
_SOLUTIONS = ("solution.sh", "solution.yaml")
_OWN = frozenset({TASK, COMPOSE, "run-tests.sh", *_SOLUTIONS})
_TEST = f"""#!/bin/bash
export TEST_DIR=/{TESTS}
bash /{TESTS}/run-tests.sh
status=$?
mkdir -p /logs/verifier
if [ $status -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""
# Keys of the one service that Terminal-Bench's own template has; Harbor's does the same.
_TEMPLATE = frozenset({"image", "container_name", "stdin_open", "tty"})
_IDLE = re.compile(r"sleep (infinity|\d+)|tail -f /dev/null|(ba)?sh")
# Parsers whose verdict is that of the exit code.
_PARSERS = ("", "pytest")
_COPY = re.compile(r"^\s*(?:COPY|ADD)\s.*$", re.MULTILINE | re.IGNORECASE)
_SPECIAL_KEY = re.compile(r"(C|M)-\w|Escape|Tab|Up|Down|Left|Right|BSpace")


class TaskYaml(BaseModel):
    """The known keys of `task.yaml`. The others become metadata."""

    model_config = ConfigDict(extra="allow")

    instruction: str = ""
    descriptions: list[dict[str, str]] = []
    parser_name: str = ""
    max_agent_timeout_sec: float = 360.0
    max_test_timeout_sec: float = 60.0

    @property
    def text(self) -> str:
        """The instruction, in the first layout that of the description `base`."""
        base = (one.get("description", "") for one in self.descriptions if one.get("key") == "base")
        return self.instruction or next(base, "")


class Build(BaseModel):
    model_config = ConfigDict(extra="allow")

    context: str = "."
    dockerfile: str = DOCKERFILE


class ComposeService(BaseModel):
    """The one service of a Compose file. Keys without a counterpart are `model_extra`."""

    model_config = ConfigDict(extra="allow")

    build: Build | str | None = None
    environment: dict[str, str | int | float | bool | None] | list[str] | None = None
    working_dir: str | None = None
    volumes: list[Any] | None = None
    command: str | list[Any] | None = None


class Compose(BaseModel):
    model_config = ConfigDict(extra="allow")

    services: dict[str, ComposeService | None] | None = None


# How Terminal-Bench itself ran the tests.
_UNREAD = frozenset({"run_tests_in_same_shell", "disable_asciinema", "test_scripts"})


def harbor_files(files: Files) -> Files:
    """Return the files of the Harbor task. Raises `TaskRefused` for a part without a counterpart."""
    given = _document(files, TASK, TaskYaml)
    if not given.text.strip():
        raise TaskRefused([(TASK, "instruction: missing")])
    if given.parser_name not in _PARSERS:
        reason = f"parser_name: {given.parser_name!r} reads the verdict from the tests' output; only pytest is known"
        raise TaskRefused([(TASK, reason)])
    if "run-tests.sh" not in files:
        raise TaskRefused([("run-tests.sh", "missing")])
    config = {
        "schema_version": SCHEMAS[-1],
        "metadata": {
            name: _fact(one) for name, one in (given.model_extra or {}).items() if one and name not in _UNREAD
        },
        "verifier": {"timeout_sec": given.max_test_timeout_sec, "environment_mode": "shared"},
        "agent": {"timeout_sec": given.max_agent_timeout_sec},
    }
    made = {
        CONFIG: TaskFile(dump_toml(config).encode()),
        INSTRUCTION: TaskFile(f"{given.text.strip()}\n".encode()),
        f"{TESTS}/test.sh": TaskFile.script(_TEST),
        f"{TESTS}/run-tests.sh": files["run-tests.sh"],
    }
    solution = _solution(files)
    if solution:
        made[f"{SOLUTION}/solve.sh"] = solution
    for path, file in files.items():
        if path.startswith(f"{TESTS}/"):
            made[path] = file
        elif path not in _OWN:
            made[f"{ENVIRONMENT}/{path}"] = file
    made |= _environment(files)
    # An image that is built with its tests or its solution gets them, as it does with Terminal-Bench.
    copied = "\n".join(_COPY.findall(made[f"{ENVIRONMENT}/{DOCKERFILE}"].text or ""))
    named = [path for path in files if path.split("/")[0] in (TESTS, *_SOLUTIONS) and path.split("/")[0] in copied]
    return made | {f"{ENVIRONMENT}/{path}": files[path] for path in named}


def _fact(value: object) -> object:
    """Return a value of the metadata as TOML has it. Objects become JSON text: TOML has no null and no other keys."""
    inner = value if isinstance(value, list) else [value]
    return value if all(isinstance(one, str | int | float) for one in inner) else json.dumps(value, default=str)


def _environment(files: Files) -> dict[str, TaskFile]:
    """The Dockerfile, with the variables and the folder that the Compose file sets."""
    compose = _document(files, COMPOSE, Compose) if COMPOSE in files else Compose()
    services = compose.services or {"client": None}
    if len(services) != 1:
        raise TaskRefused([(COMPOSE, "has several services; migrate it by `harbor tasks migrate`")])
    service = next(iter(services.values())) or ComposeService()
    build = Build(context=service.build) if isinstance(service.build, str) else service.build or Build()
    unknown = sorted(set(service.model_extra or ()) - _TEMPLATE)
    unknown += [f"build.{key}" for key in sorted(build.model_extra or ())]
    unknown += sorted(set(compose.model_extra or ()) - {"version", "name"})
    unknown += [f"the volume {one}" for one in service.volumes or () if "T_BENCH_" not in str(one)]
    unknown += [f"the variable {key} of its host" for key, value in _variables(service) if value is None]
    command = service.command or []
    typed = command if isinstance(command, str) else " ".join(map(str, command))
    if typed and not _IDLE.fullmatch(typed.removeprefix("sh -c ").removeprefix("bash -c ").strip("'\"")):
        unknown.append(f"the command {typed[:80]!r}")
    if unknown:
        raise TaskRefused([(COMPOSE, f"a Dockerfile has nothing like {', '.join(unknown)}")])
    name = build.dockerfile
    if build.context.rstrip("/") not in (".", "") or name not in files:
        raise TaskRefused([(COMPOSE, f"{name} is not in the folder of the task, from which it must be built")])
    lines = [
        f"ENV {key}={json.dumps(value)}"
        for key, value in _variables(service)
        if value is not None and "T_BENCH_" not in value
    ]
    if service.working_dir:
        lines.append(f"WORKDIR {service.working_dir}")
    text = files[name].data.rstrip(b"\n") + b"\n" + "".join(f"{line}\n" for line in lines).encode()
    return {f"{ENVIRONMENT}/{DOCKERFILE}": TaskFile(text)}


def _variables(service: ComposeService) -> list[tuple[str, str | None]]:
    """The variables of the service; one without a value has that of the host."""
    given = service.environment or []
    if isinstance(given, Mapping):
        return [(key, None if value is None else str(value)) for key, value in given.items()]
    parts = [one.partition("=") for one in given]
    return [(key, value if sign else None) for key, sign, value in parts]


def _solution(files: Files) -> TaskFile | None:
    """The script, or the commands of a list of typed lines."""
    if "solution.sh" in files:
        return TaskFile(files["solution.sh"].data, 0o755)
    if "solution.yaml" not in files:
        return None
    typed = _yaml(files, "solution.yaml", list)
    commands = [str(one.get("command", "")) if isinstance(one, Mapping) else str(one) for one in typed]
    if special := next((command for command in commands if _SPECIAL_KEY.fullmatch(command)), ""):
        raise TaskRefused([("solution.yaml", f"presses the key {special}, which a script cannot")])
    return TaskFile.script("".join(f"{line}\n" for line in ["#!/bin/bash", *commands]))


def _document(files: Files, path: str, kind: type[M]) -> M:
    try:
        return kind.model_validate(_yaml(files, path))
    except ValidationError as error:
        raise TaskRefused(
            [(path, f"{'.'.join(map(str, one['loc']))}: {one['msg']}") for one in error.errors()]
        ) from None


class _Loader(yaml.SafeLoader):
    """Reads plain values, and refuses mappings that merge keys (`<<`) have made large: each level multiplies them."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > MOST_VALUES:
            raise yaml.YAMLError("a mapping has too many merged keys")


def _yaml(files: Files, path: str, kind: type[Any] = dict) -> Any:
    refuse_long(path, files[path])
    try:
        found = yaml.load(files[path].data, _Loader)  # noqa: S506 - a safe one
    except _NOT_YAML as error:
        raise TaskRefused([(path, f"is not YAML: {str(error).splitlines()[0]}")]) from None
    if not isinstance(found, kind):
        raise TaskRefused([(path, "is no table" if kind is dict else "is no list")])
    refuse_large(path, found)
    return found
