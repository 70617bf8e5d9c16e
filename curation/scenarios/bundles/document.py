"""A scenario as one JSON document: its fields, their validation, and the sandbox that it describes."""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, ClassVar, Literal, Self

import orjson
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from curation.scenarios.bundles.rules import (
    FIXTURE_PATH,
    ONE_LINE,
    PLAIN_MODE,
    SolutionEnding,
    axis_value,
    env_name_error,
    storage_errors,
    terminal_of,
)
from curation.scenarios.taxonomy.axes import Taxonomy, shipped_taxonomy
from curation.web.problems import FieldError, Invalid, fault_of
from curation.web.refusals import NotKnown, read_partly
from sandbox.agent.tools import OWN, Tool
from sandbox.protocol import HOME, Fixture, Labels, SessionLimits, Setup

__all__ = [
    "EXAMPLE",
    "Bundle",
    "SolutionEnding",
    "announced_env",
    "parse_bundle",
    "setup_of",
    "stored_bundle",
    "terminal_of",
]
MAX_ERRORS = 100
MARKS = ("scratch", "free_order")
PROGRAMS = "/usr/local/bin/"
MAX_FIXTURE_BYTES = 256 * 1024
NOTICE_FILE = f"{HOME}/NOTICE"
_MESSAGES = {
    "extra_forbidden": "unknown key",
    "missing": "missing",
    "string_pattern_mismatch": "must be octal permissions such as 644, without setuid, setgid and sticky bits",
}
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_ASSIGNMENT = re.compile(r"([A-Z_][A-Z0-9_]*)=(.*)", re.DOTALL)
EXAMPLE: dict[str, object] = {
    "name": "greeting",
    "title": "Leave a greeting",
    "axes": {"task": "file-edit", "provider": "script", "announcement": "motd", "doc_depth": "help", "difficulty": 1},
    "fixtures": [
        {
            "path": "/usr/local/bin/todo",
            "mode": "755",
            "content": (
                "#!/bin/sh\n[ \"$1\" = --help ] && { echo 'usage: todo'; exit; }\necho 'write hello to greeting.txt'\n"
            ),
        }
    ],
    "env": {},
    "announcement": {"kind": "motd", "text": "Work is announced by: todo"},
    "provider": {"name": "todo", "doc": "todo --help"},
    "reference_solution": "todo\necho hello > greeting.txt\nexit",
    "checker": '[ "$(cat /home/agent/greeting.txt)" = hello ]',
    "expected_terminal": "exit",
}

Json = dict[str, object]
Line = Annotated[str, StringConstraints(strip_whitespace=True), ONE_LINE]
Path = Annotated[str, Field(max_length=1024), FIXTURE_PATH]
Script = Annotated[str, Field(min_length=1, max_length=65_536)]
Axes = dict[str, Annotated[str | int, BeforeValidator(axis_value)]]
Seed = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None


class BundlePart(BaseModel):
    """Refuse unknown keys; convert no types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FixtureFile(BundlePart):
    """A file that exists before the agent starts. Its bytes are either `content` as UTF-8 or `base64`."""

    path: Annotated[str, FIXTURE_PATH] = Field(
        max_length=1024,
        description="Absolute, below /home/agent, /srv, /opt, /usr/local or /var, without `.` and `..`.",
        examples=["/usr/local/bin/todo"],
    )
    mode: Annotated[str, PLAIN_MODE] = Field(
        "644", pattern=r"^0?[0-7]{3}$", description="Octal permissions, without setuid, setgid or sticky."
    )
    content: str | None = Field(None, description="Text.")
    base64: str | None = Field(None, description="Bytes that are not text.")

    @model_validator(mode="after")
    def one_content(self) -> Self:
        if (self.content is None) == (self.base64 is None):
            raise ValueError("give either `content` or `base64`")
        return self

    def data(self) -> bytes:
        """The file's bytes. Raises `ValueError` for invalid base64."""
        if self.base64 is None:
            return (self.content or "").encode()
        try:
            return base64.b64decode(self.base64, validate=True)
        except binascii.Error as error:
            raise ValueError(f"not base64: {error}") from None


class Announcement(BundlePart):
    """How the agent learns about the provider."""

    kind: Literal["motd", "banner", "env", "file"] = Field(
        description="`env` sets `NOTICE`, or the name before a `=` in the text; `file` is /home/agent/NOTICE."
    )
    text: str = Field(min_length=1, max_length=16_384)


class Provider(BundlePart):
    """The source of the directives: its name and how to read its documentation. For people, not for the sandbox."""

    name: Line = Field("", max_length=120)
    doc: str = Field("", max_length=65_536)


class Program(BundlePart):
    """A program of the scenario that agents of function tools are offered as a tool."""

    name: str = Field(description="The fixture /usr/local/bin/NAME, which may be executed.")
    description: str = Field(min_length=1, max_length=4096)
    parameters: Json = Field(
        {"type": "object", "properties": {}},
        description="JSON schema of its arguments. The program gets them as one argument, a JSON object.",
    )

    @field_validator("name")
    @classmethod
    def of_function(cls, name: str) -> str:
        if not _FUNCTION.fullmatch(name):
            raise ValueError("must have only letters, digits, `_` and `-`, at most 64, and no digit first")
        return name

    @model_validator(mode="after")
    def takes_object(self) -> Self:
        required = self.parameters.get("required", [])
        if self.parameters.get("type") != "object" or not isinstance(required, list):
            raise ValueError('`parameters` is the schema of an object: {"type": "object", "properties": {…}}')
        return self


class Bundle(BundlePart):
    """A scenario: files of the sandbox, an announcement, a reference solution, and a checker that verifies one."""

    family: ClassVar[str] = "shell"

    name: Line = Field(min_length=1, max_length=120, description="Unique in its project.")
    title: Line = Field("", max_length=200)
    axes: Axes = Field({}, description="Axis → value, of the project's taxonomy.")
    fixtures: list[FixtureFile] = Field([], max_length=1000, description="At most 256 KiB in all.")
    env: dict[str, Annotated[str, Field(max_length=32_768)]] = Field({}, description="Variables of the agent's shell.")
    announcement: Announcement
    provider: Provider = Provider()
    reference_solution: Script = Field(
        description="POSIX shell, as the agent would act; its last line is `exit` or `panic [reason]`."
    )
    checker: Script = Field(
        description="POSIX shell; status 0 means the state is right. It sees TERMINAL and PANIC_REASON."
    )
    expected_terminal: Literal["exit", "panic"]
    scratch: list[Path] = Field(
        [], max_length=100, description="Files and folders that the reference writes and whose content does not matter."
    )
    free_order: list[Path] = Field([], max_length=100, description="Files whose lines may be in any order.")
    tools: list[Program] = Field([], max_length=64, description="Programs that are offered as function tools.")
    authored_by: Line = Field("", max_length=120)
    seed: Seed = None

    def document(self) -> Json:
        """The bundle as JSON, with defaults, without null values, empty marks and an empty list of tools."""
        document = self.model_dump(mode="json", exclude_none=True)
        return {key: value for key, value in document.items() if value or key not in (*MARKS, "tools")}

    def offered(self) -> list[Tool]:
        return [Tool(tool.name, tool.description, tool.parameters) for tool in self.tools]

    @property
    def sha256(self) -> str:
        return digest(self.document())


def canonical(document: Mapping[str, object]) -> bytes:
    """The canonical JSON of a document: keys sorted, no spaces, UTF-8."""
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def digest(document: Mapping[str, object]) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(document)).hexdigest()


def parse_bundle(document: object, *, taxonomy: Taxonomy | None = None) -> Bundle:
    """Validate a JSON document as a bundle, its axes by `taxonomy` (default: the shipped one).

    Raises `Invalid`; its errors have paths such as `fixtures.0.path`.
    """
    known = taxonomy or shipped_taxonomy()
    if errors := storage_errors(document):
        raise invalid(errors)
    if not isinstance(document, Mapping):
        return _validated(document)
    bundle, wrong = read_partly(Bundle, document)
    errors = [] if wrong is None else field_errors(wrong)
    with suppress(NotKnown):
        errors += known.errors(bundle.axes)
    for rule in (_fixture_errors, _env_errors, _checker_errors, _ending_errors, _tool_errors):
        with suppress(NotKnown):
            errors += rule(bundle)
    if errors:
        raise invalid(errors)
    return bundle.model_copy(update={"axes": known.read(bundle.axes)})


def stored_bundle(document: Mapping[str, object]) -> Bundle:
    """A bundle from the database. Its axes are not checked, since the taxonomy may have changed.

    Raises `Invalid` if the rules are stricter now than when it was saved.
    """
    return _validated(document)


def announced_env(announcement: Announcement) -> dict[str, str]:
    """The variable of an `env` announcement: `NAME=value` from its text, or `NOTICE`."""
    if announcement.kind != "env":
        return {}
    if assigned := _ASSIGNMENT.fullmatch(announcement.text):
        return {assigned[1]: assigned[2]}
    return {"NOTICE": announcement.text}


def setup_of(bundle: Bundle, *, limits: SessionLimits | None = None, labels: Labels | None = None) -> Setup:
    """The sandbox of the scenario: fixtures, environment and announcement."""
    said = bundle.announcement
    lines = said.text if said.text.endswith("\n") else f"{said.text}\n"
    fixtures = [Fixture(file.path, file.data(), int(file.mode, 8)) for file in bundle.fixtures]
    if said.kind == "file":
        fixtures.append(Fixture(NOTICE_FILE, lines.encode()))
    return Setup(
        fixtures=fixtures,
        env={**bundle.env, **announced_env(said)},
        motd=lines if said.kind == "motd" else "",
        banner=lines if said.kind == "banner" else "",
        limits=limits or SessionLimits(),
        labels=labels or {},
    )


def _validated(document: object) -> Bundle:
    try:
        return Bundle.model_validate(document)
    except ValidationError as error:
        raise invalid(field_errors(error)) from None


def _checker_errors(bundle: Bundle) -> list[FieldError]:
    return [] if bundle.checker.strip() else [FieldError("checker", "must not be empty")]


def _ending_errors(bundle: Bundle) -> list[FieldError]:
    ending = terminal_of(bundle.reference_solution)
    if ending is None:
        return [FieldError("reference_solution", "its last line must be `exit` or `panic [reason]`")]
    if ending.terminal == bundle.expected_terminal:
        return []
    said = f"ends in {ending.terminal}, but the expected terminal is {bundle.expected_terminal}"
    return [FieldError("reference_solution", said)]


def _env_errors(bundle: Bundle) -> list[FieldError]:
    announced = announced_env(bundle.announcement)
    errors = [FieldError("announcement.text", refusal) for name in announced if (refusal := env_name_error(name))]
    for name in bundle.env:
        taken = "the announcement sets this variable" if name in announced else ""
        if refusal := env_name_error(name) or taken:
            errors.append(FieldError(f"env.{name[:100]}", refusal))
    return errors


def _tool_errors(bundle: Bundle) -> list[FieldError]:
    programs = {file.path for file in bundle.fixtures if int(file.mode, 8) & 0o111}
    errors: list[FieldError] = []
    taken = set(OWN)
    for index, tool in enumerate(bundle.tools):
        if tool.name in taken:
            errors.append(FieldError(f"tools.{index}.name", "another tool has this name"))
        elif f"{PROGRAMS}{tool.name}" not in programs:
            errors.append(FieldError(f"tools.{index}.name", f"there is no executable fixture {PROGRAMS}{tool.name}"))
        taken.add(tool.name)
    return errors


def _fixture_errors(bundle: Bundle) -> list[FieldError]:
    errors: list[FieldError] = []
    total = 0
    taken = {NOTICE_FILE: "the announcement"} if bundle.announcement.kind == "file" else {}
    for index, file in enumerate(bundle.fixtures):
        place = f"fixtures.{index}"
        if other := taken.get(file.path):
            errors.append(FieldError(f"{place}.path", f"{other} has the same path"))
        taken.setdefault(file.path, place)
        try:
            total += len(file.data())
        except ValueError as refused:
            errors.append(FieldError(f"{place}.base64", str(refused)))
    for index, file in enumerate(bundle.fixtures):
        parents = (file.path.rsplit("/", levels)[0] for levels in range(1, file.path.count("/")))
        if above := next((parent for parent in parents if parent in taken), ""):
            errors.append(FieldError(f"fixtures.{index}.path", f"is below {above}, which is a file"))
    if total > MAX_FIXTURE_BYTES:
        errors.append(FieldError("fixtures", f"{total:,} bytes in total; at most {MAX_FIXTURE_BYTES:,} are allowed"))
    return errors


def field_errors(error: ValidationError) -> list[FieldError]:
    return [_field_error(entry) for entry in error.errors()]


def _field_error(entry: ErrorDetails) -> FieldError:
    """An error of pydantic with a message of ours."""
    message = _MESSAGES.get(entry["type"]) or fault_of(entry)
    return FieldError(".".join(str(part)[:100] for part in entry["loc"]), message)


def invalid(errors: list[FieldError]) -> Invalid:
    return Invalid.fields(errors[:MAX_ERRORS], code="bad_bundle")
