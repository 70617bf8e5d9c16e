"""A scenario of the family `harbor`: a Harbor task as one JSON document with its files."""

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from curation.scenarios.bundles.document import (
    Axes,
    Bundle,
    BundlePart,
    Line,
    Seed,
    digest,
    field_errors,
    invalid,
    parse_bundle,
)
from curation.scenarios.bundles.rules import storage_errors
from curation.scenarios.taxonomy.axes import Taxonomy, shipped_taxonomy
from curation.web.problems import FieldError
from sandbox.harbor.task_folder import MAX_FILES, TaskFile, TaskFolder, TaskRefused, read_task

FAMILY = "harbor"
Json = dict[str, object]


class TaskPart(BundlePart):
    """A file of a task. Its bytes are either `content` as UTF-8 or `base64`."""

    path: str = Field(max_length=400, description="Relative to the task's folder.", examples=["environment/Dockerfile"])
    mode: Annotated[str, StringConstraints(pattern=r"^(644|755)$")] = Field("644", description="755 for a program.")
    content: str | None = Field(None, description="Text.")
    base64: str | None = Field(None, description="Bytes that are not text.")

    @model_validator(mode="after")
    def one_content(self) -> Self:
        if (self.content is None) == (self.base64 is None):
            raise ValueError("give either `content` or `base64`")
        self.file()
        return self

    def file(self) -> TaskFile:
        """The file. Raises `ValueError` for invalid base64."""
        if self.base64 is None:
            return TaskFile((self.content or "").encode(), int(self.mode, 8))
        try:
            return TaskFile(base64.b64decode(self.base64, validate=True), int(self.mode, 8))
        except binascii.Error as error:
            raise ValueError(f"not base64: {error}") from None

    @classmethod
    def of(cls, path: str, file: TaskFile) -> "TaskPart":
        text = file.text
        mode = "755" if file.mode & 0o100 else "644"
        if text is None:
            return cls(path=path, mode=mode, base64=base64.b64encode(file.data).decode())
        return cls(path=path, mode=mode, content=text)


class HarborTask(BundlePart):
    """A Harbor task. `source` says where it came from: a data set and its version, or Terminal-Bench."""

    # A verifier checks the state, so no last command is expected.
    expected_terminal: ClassVar[str] = ""

    family: Literal["harbor"]
    name: Line = Field(min_length=1, max_length=120, description="Unique in its project.")
    title: Line = Field("", max_length=200)
    axes: Axes = Field({}, description="Axis → value, of the project's taxonomy.")
    files: list[TaskPart] = Field(min_length=1, max_length=MAX_FILES, description="At most 8 MiB in all.")
    source: Line = Field("", max_length=200)
    authored_by: Line = Field("", max_length=120)
    seed: Seed = None

    def document(self) -> Json:
        return self.model_dump(mode="json", exclude_none=True)

    @property
    def sha256(self) -> str:
        return digest(self.document())

    def task(self) -> TaskFolder:
        return read_task({part.path: part.file() for part in self.files})


Document = Bundle | HarborTask


def parse_scenario(document: object, *, taxonomy: Taxonomy | None = None) -> Document:
    """Validate a document of either family. Raises `Invalid`; its errors have paths such as `files.0.path`."""
    if not is_harbor(document):
        if isinstance(document, dict) and document.get("family") == Bundle.family:
            document = {name: value for name, value in document.items() if name != "family"}
        return parse_bundle(document, taxonomy=taxonomy)
    if errors := storage_errors(document):
        raise invalid(errors)
    try:
        task = HarborTask.model_validate(document)
    except ValidationError as error:
        raise invalid(field_errors(error)) from None
    known = taxonomy or shipped_taxonomy()
    errors = known.errors(task.axes)
    places = {part.path: f"files.{number}" for number, part in reversed(list(enumerate(task.files)))}
    if len(places) < len(task.files):
        errors.append(FieldError("files", "two have the same path"))
    try:
        task.task()
    except TaskRefused as refused:
        errors += [FieldError(places.get(path, "files"), f"{path}: {reason}") for path, reason in refused.reasons]
    if errors:
        raise invalid(errors)
    return task.model_copy(update={"axes": known.read(task.axes)})


def is_harbor(document: object) -> bool:
    return isinstance(document, Mapping) and document.get("family") == FAMILY


def stored_task(document: Mapping[str, Any]) -> TaskFolder:
    """The task of a stored document. Raises `Invalid` if the rules are stricter now than when it was saved."""
    try:
        return HarborTask.model_validate(document).task()
    except (ValidationError, TaskRefused) as error:
        raise invalid([FieldError("files", str(error))]) from None
