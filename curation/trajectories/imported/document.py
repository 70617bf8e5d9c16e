"""The ATIF document of a trajectory: documents leave as they came in."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from curation.imports.layouts.agents import atif
from curation.imports.layouts.agents.atif_fields import PATH
from curation.imports.layouts.session import AgentSession, Json, SessionOrigin, SessionUsage
from curation.trajectories.imported.images import with_data
from curation.trajectories.models import Trajectory
from curation.trajectories.recorded import RecordedTexts

SUBAGENTS, DOCUMENT = "subagents", "document"


def document_of(session: AgentSession) -> Json:
    """Return the fields of a session that have no column: `TrajectoryText.document`."""
    inner = [{PATH: one.document.get(PATH, ""), DOCUMENT: atif.write(one)} for one in session.subagents]
    parts = {"agent": session.agent, DOCUMENT: session.document, SUBAGENTS: inner}
    return {name: value for name, value in parts.items() if value}


def atif_of(row: Trajectory) -> Json:
    """Return the ATIF document, with the data of its images. What ATIF has no place for is in its `extra`. Needs the
    row with its text."""
    text = row.text
    name = row.source_id or str(row.pk)
    model = "" if row.is_imported else row.model
    document = write_document(text.recorded, text.metadata, name=name, agent=row.agent, model=model, cost=row.cost)
    return with_data(row.project_id, document) if row.images.exists() else document


def write_document(
    recorded: RecordedTexts, metadata: Json, *, name: str, agent: str, model: str, cost: Decimal | None
) -> Json:
    """`name` is the id of the session, where the document has none; `agent` and `model` are those of a rollout."""
    steps, document, _ = recorded
    own = document.get("agent") or {"name": agent or "winnow", "version": "unknown"}
    return atif.write(
        AgentSession(
            layout=atif.NAME,
            steps=steps,
            agent=own | {"model_name": model} if model else own,
            origin=SessionOrigin(id=name),
            usage=SessionUsage(cost_usd=None if cost is None else float(cost)),
            metadata=metadata,
            subagents=[_subagent(one) for one in document.get(SUBAGENTS, ())],
            document=document.get(DOCUMENT, {}),
        )
    )


def with_review(document: Json, recorded: RecordedTexts, facts: Json) -> Json:
    """Return a document with the marks of its steps and where it was trimmed, in `extra.winnow` of each step and of the
    whole, which also has the `facts`. Nothing else changes."""
    end = {"trimmed_after": len(recorded.kept)} if recorded.is_trimmed else {}
    steps = [
        _extended(step, mark) if (mark := recorded.marks.get(str(position), {})) and not mark.get("end") else step
        for position, step in enumerate(document["steps"])
    ]
    return _extended({**document, "steps": steps}, {**facts, **end})


def _extended(part: Json, said: Json) -> Json:
    return {**part, "extra": {**(part.get("extra") or {}), atif.REVIEW: said}}


def _subagent(kept: Mapping[str, Any]) -> AgentSession:
    session = atif.read(kept[DOCUMENT]).sessions[0]
    return replace(session, document=session.document | {PATH: kept[PATH]}) if kept[PATH] else session
