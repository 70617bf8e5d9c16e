"""Which layout a document or row has, by its structure."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from curation.imports.layouts.account import REPLACED, Account, DocumentReading
from curation.imports.layouts.agents import (
    agent_data,
    atif,
    inspect_log,
    mini_swe_agent,
    mlflow,
    openhands,
    smolagents,
    swe_agent,
    traces,
)
from curation.imports.layouts.assistants import chat_logs, chatgpt, codex, event_streams, goose, pi, vscode_chat
from curation.imports.layouts.clean import clean
from curation.imports.layouts.session import Json
from curation.imports.sources.rows import RowRefused

logger = logging.getLogger(__name__)
Document = Mapping[str, Any]
# What a reader meets in a value of another kind: a list for an object, a number for a text. Its document is refused.
ODD_VALUE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout of documents that agents and tools write. `read` raises `RowRefused`.

    A layout with parts, such as the samples of a log, cleans each, so that one which cannot be stored is refused alone.
    """

    name: str
    fits: Callable[[Document], bool]
    read: Callable[..., DocumentReading]
    has_parts: bool = False


LAYOUTS = (
    Layout(atif.NAME, atif.fits, atif.read),
    Layout(mini_swe_agent.NAME, mini_swe_agent.fits, mini_swe_agent.read),
    Layout(swe_agent.NAME, swe_agent.fits, swe_agent.read),
    Layout(openhands.NAME, openhands.fits, openhands.read),
    Layout(openhands.EVENTS, openhands.fits_events, openhands.read_events),
    Layout(openhands.COMPLETION, openhands.fits_completion, openhands.read_completion),
    Layout(chat_logs.GEMINI, chat_logs.fits_gemini, chat_logs.read_gemini),
    Layout(chat_logs.OPENCODE, chat_logs.fits_opencode, chat_logs.read_opencode),
    Layout(chatgpt.NAME, chatgpt.fits, chatgpt.read),
    Layout(goose.NAME, goose.fits, goose.read),
    Layout(vscode_chat.NAME, vscode_chat.fits, vscode_chat.read),
    Layout(agent_data.NAME, agent_data.fits, agent_data.read),
    Layout(smolagents.NAME, smolagents.fits, smolagents.read),
    Layout(inspect_log.NAME, inspect_log.fits, inspect_log.read, has_parts=True),
    Layout(mlflow.NAME, mlflow.fits, mlflow.read),
    Layout(traces.NAME, traces.fits, traces.read, has_parts=True),
)


# Logs of one session with an event in each line: the name, whether a file with these first lines is one, the reader.
LOGS: Sequence[tuple[str, Callable[[Sequence[Json]], bool], Callable[[Sequence[Json]], DocumentReading]]] = (
    (codex.NAME, lambda head: any(map(codex.is_line, head)), codex.read),
    (
        chat_logs.GEMINI,
        lambda head: any(map(event_streams.is_of_gemini, head)),
        lambda lines: chat_logs.read_gemini(event_streams.gemini_document(lines)),
    ),
    (
        chat_logs.OPENCODE,
        lambda head: any(map(event_streams.is_of_opencode, head[:1])),
        lambda lines: chat_logs.read_opencode(event_streams.opencode_document(lines)),
    ),
    (pi.NAME, lambda head: any(map(pi.is_head, head[:1])), pi.read),
    (vscode_chat.NAME, lambda head: any(map(vscode_chat.is_head, head[:1])), vscode_chat.read_lines),
)


def odd_reason(error: Exception) -> str:
    """Return why a document is refused that has a value of another kind than its layout."""
    logger.warning("a document cannot be read", exc_info=error)
    return f"a value in it is of another kind than its layout has there ({type(error).__name__}: {error})"[:300]


def recognise(document: Document) -> Layout | None:
    """Return the layout of a document, or None for a row of data."""
    return next((layout for layout in LAYOUTS if layout.fits(document)), None)


def read(layout: Layout, document: Document, **options: Any) -> DocumentReading:
    """Return the sessions of a document. `options` are those of the layout's own `read`.

    Characters that no database stores are replaced, and are in the account. Raises `RowRefused`.
    """
    cleaned, replaced = (document, []) if layout.has_parts else clean(dict(document), "")
    try:
        reading = layout.read(cleaned, **options)
    except ODD_VALUE as error:
        raise RowRefused(odd_reason(error)) from error
    account = Account(reading.account.entries())
    for path in replaced:
        account.count(path, REPLACED)
    return replace(reading, account=account)
