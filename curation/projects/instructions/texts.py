"""Instructions to models: versioned text files that ship with the stages, and a project's own text in their place.

A stage registers its `.txt` file by name when its app starts; `instructions_for` gives the text that is in force in a
project with its hash, which is stored with every answer.
"""

import difflib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.db import IntegrityError, transaction
from django.db.models import Max

from curation.projects.access import Access
from curation.projects.audit import record
from curation.projects.models import InstructionsOverride, Project, Scope
from curation.web.problems import Conflict, FieldError, Invalid, NotFound, Stale

MAX_CHARACTERS = 100_000


@dataclass(frozen=True, slots=True)
class Shipped:
    """Instructions as they come with Winnow. An override must keep every one of the `placeholders`."""

    name: str
    title: str
    path: Path
    placeholders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Instructions:
    """The text in force. `version` is 0 until a project first writes its own; `sha256` is over the UTF-8 text."""

    name: str
    title: str
    text: str
    sha256: str
    overridden: bool
    version: int


_shipped: dict[str, Shipped] = {}


def register(name: str, path: Path, title: str, *, placeholders: Sequence[str] = ()) -> None:
    """Makes a stage's file known; called by the stage's app when it is ready. A name has one file."""
    given = Shipped(name, title, path, tuple(placeholders))
    if _shipped.setdefault(name, given) != given:
        raise ValueError(f"instructions {name!r} are registered for two files")


def registered() -> list[Shipped]:
    return list(_shipped.values())


def shipped(name: str) -> Shipped:
    if name not in _shipped:
        raise NotFound(f"There are no instructions {name!r}; there are {', '.join(sorted(_shipped)) or 'none'}.")
    return _shipped[name]


@cache
def shipped_text(path: Path) -> str:
    """The file's text, read once a process: a stage never changes its words while it runs."""
    return path.read_text(encoding="utf-8")


def instructions_for(project: Project, name: str, *, version: int | None = None) -> Instructions:
    """What a project tells the model of stage `name`: its newest own text, else the shipped one. One query.

    `version` asks for an earlier one; 0 is the shipped text.
    """
    known = shipped(name)
    own = InstructionsOverride.objects.filter(project=project, name=name).order_by("-version")
    found = own.first() if version is None else own.filter(version=version).first()
    if found is None or found.shipped:
        text = shipped_text(known.path)
        return Instructions(name, known.title, text, digest(text), False, found.version if found else 0)
    return Instructions(name, known.title, found.text, found.sha256, True, found.version)


def versions_in_force(project: Project) -> dict[str, int]:
    """The newest version of each stage's text that the project has ever written; the others are at 0."""
    newest = InstructionsOverride.objects.filter(project=project).values_list("name").annotate(Max("version"))
    return dict(newest.order_by())


def override_instructions(*, access: Access, name: str, text: str | None, seen_version: int) -> Instructions:
    """Adds a version with a project's own `text`, or with None the way back to the shipped one.

    `seen_version` is the version that the author looked at. Raises `Stale` where there is a newer one, `Invalid` for a
    text that is empty, too long or lacks a placeholder, `Conflict` where nothing would change.
    """
    access.require(Scope.ADMIN)
    known = shipped(name)
    # Browsers send CR LF; the hash must not depend on how a text came in.
    own = None if text is None else text.replace("\r\n", "\n").strip() + "\n"
    if own is not None:
        _refuse_unusable(known, own)
    now = instructions_for(access.project, name)
    if now.version != seen_version:
        raise Stale(
            f"Version {now.version} was written since you read version {seen_version}.",
            current={"version": now.version},
        )
    if (own is None and not now.overridden) or own == now.text:
        raise Conflict("This is the text that is in force already.", code="unchanged")
    value = shipped_text(known.path) if own is None else own
    try:
        with transaction.atomic():
            InstructionsOverride.objects.create(
                project=access.project,
                name=name,
                version=now.version + 1,
                shipped=own is None,
                text=own or "",
                sha256=digest(value),
                author=access.user,
            )
            record(
                actor=access.user,
                project=access.project,
                action="instructions.restore" if own is None else "instructions.override",
                subject=name,
                data={"version": now.version + 1, "sha256": digest(value)},
            )
    except IntegrityError:
        raise Stale(f"Version {now.version + 1} was written at the same moment.") from None
    return instructions_for(access.project, name)


def history_of(project: Project, name: str) -> list[InstructionsOverride]:
    """All versions, newest first."""
    rows = InstructionsOverride.objects.filter(project=project, name=name)
    return list(rows.select_related("author").order_by("-version"))


def version_text(project: Project, name: str, version: int) -> str:
    """The text of an earlier version; version 0 and a way back are the shipped text."""
    known = shipped(name)
    if version == 0:
        return shipped_text(known.path)
    row = InstructionsOverride.objects.filter(project=project, name=name, version=version).first()
    if row is None:
        raise NotFound(f"The instructions {name!r} have no version {version} in this project.")
    return shipped_text(known.path) if row.shipped else row.text


def diff_lines(before: str, after: str, *, labels: tuple[str, str]) -> list[str]:
    """A unified diff, line by line without line ends; empty where the texts are equal."""
    return list(difflib.unified_diff(before.splitlines(), after.splitlines(), *labels, lineterm=""))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _refuse_unusable(known: Shipped, text: str) -> None:
    reason = ""
    if not text.strip():
        reason = "The text is empty; to undo an override go back to the shipped text."
    elif len(text) > MAX_CHARACTERS:
        reason = f"The text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are kept."
    elif "\x00" in text:
        reason = "The text holds a NUL character, which no model can read."
    elif lost := [p for p in known.placeholders if p not in text]:
        reason = f"The text must keep {', '.join(lost)}: the stage puts its data there."
    if reason:
        raise Invalid(reason, errors=[FieldError("text", reason)])
