"""Put together the log records of a model call, which may arrive in several requests.

Until version 1.36 of the GenAI conventions each message was an event of its own, the model's answer the last one. A
call without one of its messages looks like another call, so the records wait until the answer is there and no record
has arrived for a while. A call in one record (`gen_ai.client.inference.operation.details`) does not wait.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from judging.traces.read import ends_call
from judging.traces.spans import call_of, time_of

SETTLE_NS = 20 * 10**9
# A call without an answer for so long is imported as it is, and named as one whose content was not recorded.
LONGEST_WAIT_NS = 15 * 60 * 10**9


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A stored log record: its JSON, when its batch arrived in nanoseconds, the key of the batch, the call that it is a
    part of, whether it ends that call, and its own time in nanoseconds."""

    line: bytes
    arrived: int
    batch: str
    call: tuple[str, str] | None
    ends: bool
    time: int

    @classmethod
    def of(cls, line: bytes, arrived: int, batch: str) -> "LogRecord":
        given = orjson.loads(line)
        return cls(line, arrived, batch, call_of(given), ends_call(given), time_of(given))


def whole_calls(records: Sequence[LogRecord], *, now: int) -> tuple[list[bytes], list[LogRecord]]:
    """Return one OTLP document for each call that has all its records, and the records that wait for others.

    An exporter that got no answer sends a request again, so a record that is there twice counts once.
    """
    documents: list[bytes] = []
    calls: dict[tuple[str, str], list[LogRecord]] = {}
    for record in records:
        if record.call is None:
            documents.append(_document([record]))
        else:
            calls.setdefault(record.call, []).append(record)
    waiting: list[LogRecord] = []
    for parts in calls.values():
        first, last = (pick(record.arrived for record in parts) for pick in (min, max))
        settled = any(record.ends for record in parts) and now - last >= SETTLE_NS
        if settled or now - first >= LONGEST_WAIT_NS:
            each_once = {record.line: record for record in parts}.values()
            documents.append(_document(sorted(each_once, key=lambda record: record.time)))
        else:
            waiting += parts
    return documents, waiting


def _document(records: Sequence[LogRecord]) -> bytes:
    lines = b",".join(record.line for record in records)
    return b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[' + lines + b"]}]}]}"
