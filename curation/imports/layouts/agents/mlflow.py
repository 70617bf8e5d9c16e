"""Traces of MLflow: `info` with tags and assessments beside the spans in `data`, or a row of `mlflow.search_traces`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from curation.imports.layouts.account import DocumentReading, Fields
from curation.imports.layouts.agents import traces
from curation.imports.layouts.messages.calls import decoded
from curation.imports.layouts.rows.columns import is_number_as_text
from curation.imports.layouts.rows.mapping import REWARD
from curation.imports.layouts.rows.surroundings import read_surroundings
from curation.imports.layouts.session import Json, SessionOutcome, SessionUsage
from curation.imports.sources.rows import RowRefused

NAME = "MLflow trace"
_ABOUT = frozenset(("trace_metadata", "request_metadata", "trace_location", "experiment_id"))
# Answers of MLflow's judges.
_WORDS = {"yes": 1.0, "no": 0.0, "pass": 1.0, "fail": 0.0, "true": 1.0, "false": 0.0}
_OF_ASSESSMENT = ("assessment_name", "name", "feedback", "expectation", "rationale", "valid")
_REPEATED = "ignored: the spans have it"
_REPEATS = dict.fromkeys(("request", "response", "request_preview", "response_preview", "trace"), _REPEATED)


def fits(document: Mapping[str, Any]) -> bool:
    info, spans = _parts(document)
    return isinstance(spans, list) and not _ABOUT.isdisjoint(info)


def read(document: Mapping[str, Any]) -> DocumentReading:
    """Return the sessions of a trace. Raises `RowRefused` without a span that calls a model."""
    info, spans = _parts(document)
    reading = traces.read({"spans": spans})
    if not reading.sessions:
        raise RowRefused("no span of the trace calls a model: none has the type LLM or CHAT_MODEL, with its messages")
    fields = Fields(
        {**info, "assessments": decoded(info.get("assessments")) or []}, "info." if "info" in document else ""
    )
    identifier = str(fields.take("trace_id", "id") or fields.take("request_id", "id") or "")
    columns = _assessed(fields)
    state = str(fields.take("state", "outcome") or fields.take("status", "outcome"))
    for name in ("tags", "trace_metadata", "request_metadata"):
        given = decoded(fields.take(name, "metadata"))
        columns |= {f"{name}.{key}": value for key, value in given.items()} if isinstance(given, dict) else {}
    more = Fields(columns, fields.path)
    around = read_surroundings(more)
    seconds = _seconds(fields)
    metadata = around.metadata | fields.rest({"spans": "steps", **_REPEATS})
    sessions = []
    for session in reading.sessions:
        verdict = replace(session.verdict, rewards=around.verdict.rewards)
        if verdict.outcome is SessionOutcome.UNKNOWN:
            failed = state.rpartition(".")[2].upper() == "ERROR"
            verdict = replace(verdict, outcome=SessionOutcome.ERROR if failed else around.verdict.outcome)
        sessions.append(
            replace(
                session,
                layout=NAME,
                origin=replace(session.origin, id=identifier or session.origin.id),
                verdict=verdict,
                usage=SessionUsage(seconds=seconds).over(session.usage),
                metadata=session.metadata | metadata,
            )
        )
    account = fields.account()
    for one in (more.account(), reading.account):
        account.add(one)
    if "data" in document:
        account.count("data", "steps")
    return replace(reading, sessions=sessions, account=account)


def _parts(document: Mapping[str, Any]) -> tuple[Json, Any]:
    info, data = document.get("info"), document.get("data")
    if isinstance(info, dict) and isinstance(data, dict):
        return info, data.get("spans")
    return dict(document), decoded(document.get("spans"))


def _assessed(fields: Fields) -> Json:
    """Return the feedback of people and judges as rewards, and other values as columns of the metadata."""
    found: Json = {}
    for index, one in enumerate(fields.take("assessments", "rewards, metadata")):
        name = str(one.get("assessment_name") or one.get("name"))
        kind = "feedback" if isinstance(one.get("feedback"), dict) else "expectation"
        value = (one.get(kind) or {}).get("value")
        fields.ignore_rest(one, _OF_ASSESSMENT, f"assessments.{index}")
        if one.get("valid") is False:
            fields.became(f"assessments.{index}.valid", "ignored: a later assessment replaces it")
            continue
        word = str(value).strip().lower()
        value = float(word) if is_number_as_text(word) else _WORDS.get(word, value)
        is_reward = kind == "feedback" and isinstance(value, float)
        found[f"{REWARD}{name}" if is_reward else f"{kind}.{name}"] = value
        if one.get("rationale"):
            found[f"{kind}.{name}.rationale"] = one["rationale"]
    return found


def _seconds(fields: Fields) -> float | None:
    """Return the time that the trace took, which versions write as milliseconds or as text in seconds."""
    for name in ("execution_duration", "execution_duration_ms", "execution_time_ms"):
        value = fields.take(name, "usage.seconds")
        if isinstance(value, str) and is_number_as_text(value.removesuffix("s")):
            return float(value.removesuffix("s"))
        if isinstance(value, int | float):
            return value / 1000
    return None
