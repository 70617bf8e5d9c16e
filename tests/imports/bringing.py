"""Imports in tests: rows uploaded, the run driven by the real engine, and its messages."""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.files import File

from curation.imports.sources.stored import store_upload
from curation.projects.models import Project
from curation.runs.engine.worker import drive
from curation.runs.launch import launch
from curation.runs.models import Item, Run

SYSTEM = {"role": "system", "content": "You solve coding tasks."}


def chat(number: int, turns: int = 1, **values: Any) -> dict[str, Any]:
    """A row with so many assistant turns after the system's and the user's message."""
    messages: list[dict[str, Any]] = [SYSTEM, {"role": "user", "content": f"Task {number}"}]
    for turn in range(turns):
        messages += [
            {"role": "assistant", "content": f"THOUGHT: step {turn} of {number}"},
            {"role": "user", "content": f"output {turn}"},
        ]
    return {"instance_id": f"acme__billing-{number}", "messages": messages, **values}


def as_lines(rows: Sequence[Any]) -> bytes:
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()


def zipped(files: Mapping[str, bytes | str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def upload(project: Project, content: bytes, name: str = "turns.jsonl") -> str:
    return store_upload(project=project, file=File(io.BytesIO(content), name=name), name=name)


def start(project: Project, kind: str, content: bytes, name: str = "", **params: Any) -> Run:
    key = upload(project, content, name or f"{kind}.jsonl")
    return launch(project=project, kind="import", params={"kind": kind, "upload": key, **params}, user=None)


def bring(project: Project, kind: str, rows: Sequence[Any] | bytes, name: str = "", **params: Any) -> Run:
    """Uploads, launches and drives to the end; the ended run."""
    return end(start(project, kind, rows if isinstance(rows, bytes) else as_lines(rows), name, **params))


def end(run: Run) -> Run:
    drive(run.pk)
    run.refresh_from_db()
    return run


def bad_rows(run: Run) -> dict[str, str]:
    return dict(Item.objects.filter(run=run, stage="bad_row").order_by("id").values_list("key", "reason"))
