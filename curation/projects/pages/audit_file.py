"""The audit log as a file that is sent while it is read."""

import csv
import io
from collections.abc import Iterable, Iterator

import orjson
from django.http import StreamingHttpResponse

from curation.projects.models import AuditEntry, AuditQuerySet
from curation.projects.pages.schemas import AuditOut

AT_ONCE = 1000
COLUMNS = ("id", "created_at", "actor", "action", "subject", "data")
# A spreadsheet takes a cell that begins so for a formula, and subjects are words of users.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def audit_file(entries: AuditQuerySet, kind: str, *, name: str) -> StreamingHttpResponse:
    """The entries as JSON Lines or CSV, oldest first."""
    rows = entries.order_by("id").iterator(chunk_size=AT_ONCE)
    pieces: Iterator[bytes | str] = _csv(rows) if kind == "csv" else _lines(rows)
    media_type = "text/csv; charset=utf-8" if kind == "csv" else "application/jsonl"
    response = StreamingHttpResponse(pieces, content_type=media_type)
    response["Content-Disposition"] = f'attachment; filename="audit-{name}.{kind}"'
    return response


def _lines(rows: Iterable[AuditEntry]) -> Iterator[bytes | str]:
    for row in rows:
        yield orjson.dumps(AuditOut.model_validate(row).model_dump(), option=orjson.OPT_APPEND_NEWLINE)


def _csv(rows: Iterable[AuditEntry]) -> Iterator[bytes | str]:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for row in rows:
        values = AuditOut.model_validate(row).model_dump()
        values["created_at"] = row.created_at.isoformat()
        values["data"] = orjson.dumps(values["data"]).decode()
        writer.writerow(_cell(values[name]) for name in COLUMNS)
        yield out.getvalue()
        out.seek(0)
        out.truncate()
    yield out.getvalue()  # the header of an empty log


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULA) else text
