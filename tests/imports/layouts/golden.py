"""Files of agents in the shapes that their repositories document, made for these tests."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import atif as models

from curation.imports.layouts.agents import atif
from curation.imports.layouts.folder import Document, DocumentFolder
from curation.imports.layouts.session import AgentSession

GOLDEN = Path(__file__).parent / "golden"


def golden(name: str) -> DocumentFolder:
    """Return the files in a folder of `golden`, by their names relative to it."""
    root = GOLDEN / name
    names = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    return DocumentFolder(names, lambda each: (root / each).open("rb"))


def packed(files: Mapping[str, bytes]) -> DocumentFolder:
    return DocumentFolder(list(files), lambda name: BytesIO(files[name]))


def documents(folder: DocumentFolder) -> dict[str, Document]:
    return {document.name: document for _, document in folder.documents()}


def sessions(folder: DocumentFolder) -> dict[str, AgentSession]:
    """Return the sessions by their origin's id or instance. Each is a valid document of ATIF."""
    found: dict[str, AgentSession] = {}
    for document in documents(folder).values():
        assert not document.refused, document
        for session in document.reading.sessions if document.reading else ():
            models.Trajectory.model_validate(atif.write(session))
            found[session.origin.instance_id or session.origin.id] = session
    return found


def becomes(document: Document) -> dict[str, str]:
    assert document.reading
    return {entry["field"]: entry["becomes"] for entry in document.reading.account.entries()}


def said(session: AgentSession) -> list[tuple[str, object]]:
    return [(step["source"], step["message"]) for step in session.steps]
