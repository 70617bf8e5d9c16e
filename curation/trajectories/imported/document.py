"""The ATIF document of a trajectory: what came in goes out the same."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from curation.imports.layouts.agents import atif
from curation.imports.layouts.session import Json, Origin, Session, Usage
from curation.trajectories.imported.images import with_data
from curation.trajectories.models import Trajectory

SUBAGENTS, DOCUMENT = "subagents", "document"


def document_of(session: Session) -> Json:
    """Return the fields of a session that have no column: `TrajectoryText.document`."""
    inner = [{atif.PATH: one.document.get(atif.PATH, ""), DOCUMENT: atif.write(one)} for one in session.subagents]
    parts = {"agent": session.agent, DOCUMENT: session.document, SUBAGENTS: inner}
    return {name: value for name, value in parts.items() if value}


def atif_of(row: Trajectory) -> Json:
    """Return the ATIF document, with the data of its images. What ATIF has no place for is in its `extra`. Needs the
    row with its text."""
    text = row.text
    agent = text.document.get("agent") or {"name": row.agent or "winnow", "version": "unknown"}
    if not row.is_imported:
        agent = agent | {"model_name": row.model}
    document = atif.write(
        Session(
            layout=atif.NAME,
            steps=text.steps,
            agent=agent,
            origin=Origin(id=row.source_id or str(row.pk)),
            usage=Usage(cost_usd=None if row.cost is None else float(row.cost)),
            metadata=text.metadata,
            subagents=[_subagent(one) for one in text.document.get(SUBAGENTS, ())],
            document=text.document.get(DOCUMENT, {}),
        )
    )
    has_images = row.images.exists()
    return with_data(row.project_id, document) if has_images else document


def _subagent(kept: Mapping[str, Any]) -> Session:
    session = atif.read(kept[DOCUMENT]).sessions[0]
    return replace(session, document=session.document | {atif.PATH: kept[atif.PATH]}) if kept[atif.PATH] else session
