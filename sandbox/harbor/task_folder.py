"""A Harbor task as files: read and check its folder, write it, and name the parts that Docker alone cannot run.

`task.toml` is read by models of our own with the fields that matter here. Others stay in the file as they are, and
Harbor's lint reports those that it does not know.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, Field, ValidationError, field_validator

from sandbox.errors import SandboxError

CONFIG, INSTRUCTION, IGNORE = "task.toml", "instruction.md", ".harborignore"
ENVIRONMENT, TESTS, SOLUTION, STEPS = "environment", "tests", "solution", "steps"
DOCKERFILE, COMPOSE = "Dockerfile", "docker-compose.yaml"
SCHEMAS = ("1.0", "1.1", "1.2", "1.3", "1.4")
MAX_FILES, MAX_BYTES, MAX_PATH = 2000, 8 * 1024 * 1024, 400
# Bytes, levels and values of a document: parsers of TOML and YAML take quadratic time, and aliases of YAML multiply.
MAX_DOCUMENT, DEEPEST, MOST_VALUES = 64 * 1024, 64, 10_000
PLAIN, PROGRAM = 0o644, 0o755
# Besides control characters, what no file system of Harbor's hosts takes in a name.
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f\\<>:"|?*]')
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]*/[a-zA-Z0-9][a-zA-Z0-9._-]*")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


class TaskRefused(SandboxError):
    """The files are no task that Harbor takes. `reasons` has each path and its reason."""

    def __init__(self, reasons: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{path}: {reason}" if path else reason for path, reason in reasons))
        self.reasons = tuple(reasons)


@dataclass(frozen=True, slots=True)
class TaskFile:
    data: bytes
    mode: int = PLAIN

    @property
    def text(self) -> str | None:
        """The content of a text file, else None."""
        try:
            return None if b"\0" in self.data else self.data.decode()
        except UnicodeDecodeError:
            return None

    @classmethod
    def script(cls, text: str) -> "TaskFile":
        return cls(text.encode(), PROGRAM)


Files = Mapping[str, TaskFile]


class _Network(BaseModel):
    network_mode: Literal["no-network", "public", "allowlist"] | None = None
    allowed_hosts: list[str] | None = None

    @property
    def has_allow_list(self) -> bool:
        return self.network_mode == "allowlist" or bool(self.allowed_hosts)


class McpServer(BaseModel):
    headers: dict[str, str] = {}


class Machine(_Network):
    """The section `[environment]`, and that of a separate verifier."""

    docker_image: str | None = None
    os: str = "linux"
    gpus: int | None = None
    tpu: dict[str, Any] | None = None
    mcp_servers: list[McpServer] = []
    env: dict[str, str] = {}

    @field_validator("os")
    @classmethod
    def _lower(cls, name: str) -> str:
        return name.lower()


class Verifier(_Network):
    timeout_sec: float = 600.0
    env: dict[str, str] = {}
    user: str | int | None = None
    environment_mode: Literal["shared", "separate"] | None = None
    environment: Machine | None = None

    @property
    def mode(self) -> str | None:
        """`shared` or `separate`, or None if this section does not say."""
        return self.environment_mode or ("separate" if self.environment else None)


class AgentSection(_Network):
    timeout_sec: float | None = None
    user: str | int | None = None


class Artifact(BaseModel):
    source: str
    service: str | None = None


class TaskStep(BaseModel):
    name: str
    agent: AgentSection = AgentSection()
    verifier: Verifier = Verifier()
    artifacts: list[str | Artifact] = []

    @field_validator("name")
    @classmethod
    def _is_folder(cls, name: str) -> str:
        if not name.strip() or name in {".", ".."} or "/" in name or _FORBIDDEN.search(name):
            raise ValueError("is no name of a folder")
        return name


class Package(BaseModel):
    name: str
    description: str = ""

    @field_validator("name")
    @classmethod
    def _has_organisation(cls, name: str) -> str:
        if not _NAME.fullmatch(name) or ".." in name:
            raise ValueError("must be ORGANISATION/NAME of letters, digits, `-`, `_` and `.`")
        return name


class Solution(BaseModel):
    env: dict[str, str] = {}


class Config(BaseModel):
    """`task.toml`. Files of schema 1.0 may call the version `version`."""

    schema_version: str = Field("1.4", validation_alias=AliasChoices("schema_version", "version"))
    task: Package | None = None
    metadata: dict[str, Any] = {}
    verifier: Verifier = Verifier()
    agent: AgentSection = AgentSection()
    environment: Machine = Machine()
    solution: Solution = Solution()
    steps: list[TaskStep] | None = None
    artifacts: list[str | Artifact] = []

    @field_validator("schema_version")
    @classmethod
    def _is_known(cls, version: str) -> str:
        if version not in SCHEMAS:
            raise ValueError(f"is not known; {SCHEMAS[0]} to {SCHEMAS[-1]} are")
        return version


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """A checked task. `files` are by their paths relative to its folder."""

    files: Files
    config: Config

    @property
    def name(self) -> str:
        """`ORGANISATION/NAME`, or '' if the file has none."""
        return self.config.task.name if self.config.task else ""

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(step.name for step in self.config.steps or ())

    @property
    def is_separate(self) -> bool:
        """Whether no verifier runs on the machine that the agent has changed."""
        return all(self.mode_of(step) == "separate" for step in self.steps or ("",))

    def mode_of(self, step: str) -> str:
        """`shared` or `separate`, of a step or, without its name, of the task."""
        return self.verifier_of(step).mode or self.config.verifier.mode or "shared"

    def verifier_of(self, step: str) -> Verifier:
        return next((one.verifier for one in self.config.steps or () if one.name == step), self.config.verifier)

    def carried_of(self, step: str) -> tuple[str, ...]:
        """The files and folders of the agent's machine that a separate verifier gets."""
        own = next((one.artifacts for one in self.config.steps or () if one.name == step), [])
        listed = [Artifact(source=one) if isinstance(one, str) else one for one in (*self.config.artifacts, *own)]
        # Those of another service are files of its own machine.
        places = [one.source.rstrip("/") for one in listed if one.service in (None, "main")]
        return ("/logs/artifacts", *places)

    @staticmethod
    def tests_of(step: str) -> str:
        """The folder of the tests of a step alone, or of the task."""
        return f"{STEPS}/{step}/{TESTS}" if step else TESTS

    def has_image_of_tests(self, step: str) -> bool:
        """Whether a separate verifier's image has the tests, so that Harbor does not bring them."""
        verifiers = (self.verifier_of(step), self.config.verifier)
        images = any(one.environment and one.environment.docker_image for one in verifiers)
        places = (f"{folder}/{name}" for folder in (self.tests_of(step), TESTS) for name in (DOCKERFILE, COMPOSE))
        return self.mode_of(step) == "separate" and bool(images or any(place in self.files for place in places))

    @property
    def instruction(self) -> str:
        """The text for the agent; of several steps each with its name."""
        if not self.steps:
            return self.files[INSTRUCTION].text or ""
        return "\n".join(f"# {step}\n\n{self.files[f'{STEPS}/{step}/{INSTRUCTION}'].text}" for step in self.steps)

    def below(self, *folders: str) -> dict[str, TaskFile]:
        """The files below any of these folders, of the task and of its steps, by their whole paths."""
        found = {}
        for path, file in self.files.items():
            parts = path.split("/")
            if parts[0] in folders or (parts[0] == STEPS and len(parts) > 3 and parts[2] in folders):
                found[path] = file
        return found

    def solutions(self) -> list[str]:
        """The folders with a `solve.sh`: one per step that has its own."""
        folders = [f"{STEPS}/{step}/{SOLUTION}" for step in self.steps] + [SOLUTION]
        return [folder for folder in folders if f"{folder}/solve.sh" in self.files]

    def not_run_here(self) -> list[str]:
        """What Docker on one Linux machine does not offer, a sentence each; empty if it can run."""
        machines = [self.config.environment, *(v.environment for v in self._verifiers() if v.environment)]
        networks: list[_Network] = [*machines, self.config.agent, *self._verifiers()]
        networks += [step.agent for step in self.config.steps or ()]
        found = []
        if any(machine.gpus for machine in machines):
            found.append("It needs a GPU.")
        if any(machine.tpu for machine in machines):
            found.append("It needs a TPU.")
        if any(machine.os == "windows" for machine in machines):
            found.append("It needs Windows.")
        if any(network.has_allow_list for network in networks):
            found.append("It limits the network to a list of hosts.")
        tables = [machine.env for machine in machines] + [verifier.env for verifier in self._verifiers()]
        tables += [server.headers for machine in machines for server in machine.mcp_servers]
        variables = {name for env in [*tables, self.config.solution.env] for name in _named(env)}
        if variables:
            found.append(f"It needs variables of the machine that runs it: {', '.join(sorted(variables))}.")
        return found

    def write(self, folder: Path) -> None:
        """Write the files into a folder, which must not have links in their places."""
        for path, file in self.files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.data)
            target.chmod(file.mode)

    def changed(self, files: Mapping[str, TaskFile | None], **sections: Mapping[str, object]) -> "TaskFolder":
        """A copy with other files (None removes one), and with other values in sections of `task.toml`."""
        document = tomllib.loads(self.files[CONFIG].data.decode())
        for name, values in sections.items():
            document[name] = {**document.get(name, {}), **values}
        return self._of(document, files)

    def with_time(self, seconds: float) -> "TaskFolder":
        """A copy whose verifiers have at least this time."""
        document = tomllib.loads(self.files[CONFIG].data.decode())
        for one in (document, *document.get("steps", ())):
            verifier = one.setdefault("verifier", {})
            verifier["timeout_sec"] = max(seconds, verifier.get("timeout_sec", 0.0))
        return self._of(document, {})

    def _of(self, document: Mapping[str, object], files: Mapping[str, TaskFile | None]) -> "TaskFolder":
        merged = {**self.files, CONFIG: TaskFile(dump_toml(document).encode()), **files}
        return read_task({path: file for path, file in merged.items() if file is not None})

    def _verifiers(self) -> list[Verifier]:
        return [self.config.verifier, *(step.verifier for step in self.config.steps or ())]


def read_task(files: Files) -> TaskFolder:
    """Check the files of a task. Raises `TaskRefused` with all that is wrong."""
    wrong = list(_wrong_files(files))
    if CONFIG not in files:
        raise TaskRefused([*wrong, (CONFIG, "missing")])
    try:
        refuse_long(CONFIG, files[CONFIG])
        document = read_toml(files[CONFIG].data.decode())
        refuse_large(CONFIG, document)
        config = Config.model_validate(document)
    except ValidationError as error:
        wrong += [(CONFIG, f"{'.'.join(map(str, one['loc']))}: {_reason(one['msg'])}") for one in error.errors()]
        raise TaskRefused(wrong) from None
    except (ValueError, RecursionError) as error:  # the latter: nested beyond the interpreter's depth
        raise TaskRefused([*wrong, (CONFIG, f"is not TOML: {error}")]) from None
    task = TaskFolder(files, config)
    wrong += _missing(task)
    if wrong:
        raise TaskRefused(wrong)
    return task


def refuse_long(path: str, file: TaskFile) -> None:
    """Raise `TaskRefused` for a document that would take long to parse."""
    if len(file.data) > MAX_DOCUMENT:
        raise TaskRefused([(path, f"is longer than {MAX_DOCUMENT // 1024} KiB")])


def refuse_large(path: str, document: object) -> None:
    """Raise `TaskRefused` for a parsed document with too many levels or values, each counted where it is repeated."""
    level, found = [document], 0
    for _ in range(DEEPEST):
        level = [inner for value in level for inner in _inside(value)]
        found += len(level)
        if not level:
            return
        if found > MOST_VALUES:
            break
    raise TaskRefused([(path, f"has more than {DEEPEST} levels or {MOST_VALUES:,} values")])


def _inside(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()


def dump_toml(document: Mapping[str, Any]) -> str:
    """TOML of a document that `tomllib` has read or that is made of texts, numbers, lists and tables."""
    return "\n".join(_toml(document, "")) + "\n"


def _wrong_files(files: Files) -> Iterator[tuple[str, str]]:
    if len(files) > MAX_FILES:
        yield "", f"{len(files):,} files; at most {MAX_FILES:,} are allowed"
    total = sum(len(file.data) for file in files.values())
    if total > MAX_BYTES:
        yield "", f"{total:,} bytes in all; at most {MAX_BYTES:,} are allowed"
    for path in files:
        parts = path.split("/")
        if any(part in {"", ".", ".."} for part in parts):
            yield path[:100], "must be relative, without `//`, `.` and `..`"
        elif _FORBIDDEN.search(path) or len(path.encode()) > MAX_PATH:
            yield repr(path[:100]), "has characters that a file system does not take, or is too long"
        elif any("/".join(parts[:end]) in files for end in range(1, len(parts))):
            yield path, "is below a path that is a file"


def _missing(task: TaskFolder) -> Iterator[tuple[str, str]]:
    config, files = task.config, task.files
    names = [step.name.casefold() for step in config.steps or ()]
    if len(names) != len(set(names)):
        yield CONFIG, "steps: two have the same name"
    if not config.environment.docker_image and not any(path.startswith(f"{ENVIRONMENT}/") for path in files):
        yield ENVIRONMENT, f"missing: add {ENVIRONMENT}/{DOCKERFILE}, or name a `docker_image`"
    for root in [f"{STEPS}/{name}/" for name in task.steps] or [""]:
        if f"{root}{INSTRUCTION}" not in files:
            yield f"{root}{INSTRUCTION}", "missing"
        elif files[f"{root}{INSTRUCTION}"].text is None:
            yield f"{root}{INSTRUCTION}", "is not text"
    script = "test.bat" if config.environment.os == "windows" else "test.sh"
    for step in task.steps or ("",):
        own = task.tests_of(step)
        if not task.has_image_of_tests(step) and not {f"{own}/{script}", f"{TESTS}/{script}"} & files.keys():
            yield f"{own}/{script}", "missing"


def _named(env: Mapping[str, str]) -> set[str]:
    return {name for value in env.values() for name in _VARIABLE.findall(value)}


def _reason(message: str) -> str:
    return message.removeprefix("Value error, ")


def _toml(table: Mapping[str, Any], prefix: str) -> Iterator[str]:
    inner = {key: value for key, value in table.items() if _is_table(value) or _is_tables(value)}
    for key, value in table.items():
        if key not in inner:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in inner.items():
        name = f"{prefix}{_key(key)}"
        for one in value if _is_tables(value) else [value]:
            yield f"\n[[{name}]]" if _is_tables(value) else f"\n[{name}]"
            yield from _toml(one, f"{name}.")


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_table, value))


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # The escapes of JSON are escapes of TOML too; JSON leaves DEL as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_value(inner)}' for key, inner in value.items())} }}"
    if isinstance(value, float):
        return repr(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


# `tomllib` takes quadratic time and memory for a key of many parts: 64 KiB of them are 4 GB.
MOST_PARTS = 64
_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*"""
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*(?:{_PART}){{{MOST_PARTS}}}", re.MULTILINE)


def read_toml(text: str) -> dict[str, Any]:
    """Return the document. Raises `ValueError`, and `RecursionError` for one that is nested beyond the interpreter's
    depth."""
    if _LONG_KEY.search(text):
        raise ValueError(f"a key has more than {MOST_PARTS} parts")
    return tomllib.loads(text)
