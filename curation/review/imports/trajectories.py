"""The import kind `trajectories`: runs of any agent, each with its outcome, and a sample to review."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar
from urllib.parse import urlencode

import orjson
from django.urls import reverse
from pydantic import Field

from curation.imports.documents import DocumentReader, DocumentRow
from curation.imports.layouts.account import NO_FIGURE, NOT_FINITE, DocumentReading
from curation.imports.layouts.images import Beside, read_images
from curation.imports.layouts.messages.calls import with_tools
from curation.imports.layouts.messages.write import messages_of
from curation.imports.layouts.recognise import read, recognise
from curation.imports.layouts.rows.mapping import RowMapping
from curation.imports.layouts.rows.override import overridden
from curation.imports.layouts.rows.read import has_conversation, may_be_row, read_row
from curation.imports.layouts.session import AgentSession
from curation.imports.row_kinds import ImportTarget, RowPreview, SessionOptions
from curation.imports.sources.open import OpenedSource
from curation.imports.sources.rows import RowRefused, SourceReader, SourceRow
from curation.projects.settings.data import TRAJECTORIES
from curation.review.imports.content import Trained
from curation.review.imports.decisions import Carried, DecidingKind, deciding_person, take_over
from curation.review.models import Action
from curation.runs.models import Run
from curation.trajectories.imported.save import save_sessions
from curation.trajectories.models import Trajectory
from judging.messages import message_text


class TrajectoryOptions(SessionOptions):
    """`decisions` makes the labels in the file decisions of the person who imports."""

    decisions: bool = Field(False, description="Take over the labels in the file as your decisions.")
    trained: Trained = Field("all", description="Steps that are trained on if none is marked: `all`, or the last one.")


class TrajectoryKind(DecidingKind[TrajectoryOptions, DocumentReading]):
    name = "trajectories"
    title = "Runs of agents (trajectories)"
    unit = "trajectories"
    columns = "Harbor jobs, ATIF, files of SWE-agent, mini-swe-agent, OpenHands, Inspect; rows with messages"
    words: ClassVar[Mapping[str, str]] = {
        "trajectories": "New trajectories",
        "duplicates": "Known trajectories, not imported again",
        "without_trajectory": "Runs without a trajectory",
        "unreadable": "Parts that cannot be read",
        "approved": "Approved by the file",
        "rejected": "Rejected by the file",
        "refused": "Decisions of the file that are refused, as without answers to required questions",
    }
    options = TrajectoryOptions

    def reader_of(self, source: OpenedSource) -> SourceReader:
        if source.files is None:
            return source.reader
        return DocumentReader(source.files, rows=source.rows, is_row=may_be_row)

    def data_kind(self, entries: Sequence[DocumentReading]) -> str:
        return TRAJECTORIES

    def claims(self, row: SourceRow) -> bool:
        """Rows of chats may be meant for turns or samples; files of agents, and rows with an outcome, are runs."""
        if isinstance(row, DocumentRow) and row.document.reading is not None:
            return True
        return recognise(row.value) is not None

    def links(self, run: Run) -> Sequence[tuple[str, str]]:
        slug = run.project.slug
        shown = f"{reverse('trajectory-list', args=[slug])}?{urlencode({'run': run.pk})}"
        return [("Review", reverse("queue", args=[slug])), ("Show the trajectories", shown)]

    def parse(self, row: SourceRow, options: TrajectoryOptions) -> DocumentReading:
        try:
            reading = self._reading(row, options.mapping)
            # Rows that are not in files, such as those of Parquet, have none beside them.
            beside: Beside = row.document.beside if isinstance(row, DocumentRow) else lambda path: None
            for session in reading.sessions:
                told = [(f"(usage: {name})", NO_FIGURE) for name in session.usage.dropped]
                told += [(f"(reward: {name})", NOT_FINITE) for name in session.verdict.dropped]
                reading.account.count_faults(told)
            return replace(reading, sessions=[self._whole(one, beside, reading, options) for one in reading.sessions])
        except RowRefused as refused:
            raise RowRefused(f"{row.place if isinstance(row, DocumentRow) else ''}{refused}") from None

    def _whole(
        self, session: AgentSession, beside: Beside, reading: DocumentReading, options: TrajectoryOptions
    ) -> AgentSession:
        return with_tools(read_images(session, beside, reading.account), options.attached, reading.account)

    def _reading(self, row: SourceRow, mapping: RowMapping | None) -> DocumentReading:
        """Read a row by its layout, and over it the columns that are mapped; or by a mapping of its messages alone."""
        value = row.document.value if isinstance(row, DocumentRow) else row.value
        if mapping is None or not mapping.reads_messages:
            found = _recognised(row)
            if found is not None:
                return found if mapping is None else overridden(found, mapping, value)
        elif not value:
            raise RowRefused("a run in several files has no list of messages that can be mapped")
        session, account = read_row(value, mapping)
        if session.endings:
            raise RowRefused("a row with two answers is no run of an agent: import it as samples")
        if mapping is None and not has_conversation(value):
            raise RowRefused("a row without a list of messages is no run of an agent: import it as samples")
        return DocumentReading([session], account)

    def weight(self, entry: DocumentReading) -> int:
        return sum(len(orjson.dumps(session.steps)) for session in entry.sessions)

    def write(self, target: ImportTarget, entries: list[DocumentReading]) -> dict[str, int]:
        target.account_for(entry.account for entry in entries)
        sessions = [session for entry in entries for session in entry.sessions]
        target.read_as(session.layout for session in sessions)
        options = self.read_options(target.run.params.get("options", {}), target.run.project)
        saved = save_sessions(target.run, target.source, sessions, unmarked=options.trained == "all")
        return {
            "trajectories": len(saved),
            "duplicates": len(sessions) - len(saved),
            "without_trajectory": sum(entry.without_trajectory for entry in entries),
            "unreadable": sum(len(entry.unreadable) for entry in entries),
            **take_over(target.run, deciding_person(target.run), _decisions(saved)),
        }

    def preview(self, row: SourceRow, options: TrajectoryOptions) -> RowPreview:
        entry = self.parse(row, options)
        lines = [line for session in entry.sessions for line in _lines(session)]
        layout = ", ".join(sorted({session.layout for session in entry.sessions}))
        return RowPreview(layout, len(entry.sessions), lines, entry.account)


def _recognised(row: SourceRow) -> DocumentReading | None:
    """Return what the layout of a row finds in it, or None for a row of data. Raises `RowRefused`."""
    if not isinstance(row, DocumentRow):
        layout = recognise(row.value)
        return None if layout is None else read(layout, row.value)
    if row.document.refused:
        raise RowRefused(row.document.refused)
    return row.document.reading


def _decisions(saved: Sequence[tuple[AgentSession, Trajectory]]) -> Carried:
    """Return the samples of sessions with a label. An outcome is no decision of a person."""
    alike: dict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    for session, row in saved:
        if session.label is not None and row.sample_id is not None:
            action = Action.APPROVE if session.label else Action.REJECT
            alike[action.value, ()].append(row.sample_id)
    return alike


def _lines(session: AgentSession) -> Iterator[tuple[str, str]]:
    """Yield what a preview shows: the ends of the run, its outcome, its first and its last step."""
    rewards = (f"{name} {value:g}" for name, value in session.verdict.rewards.items())
    yield "arrives as", ", ".join([f"{len(session.steps)} steps", session.verdict.outcome, *rewards])
    for label, step in zip(("first step", "last step"), [*session.steps[:1], *session.steps[1:][-1:]], strict=False):
        yield f"{label} ({step['source']})", message_text(messages_of(step)[0])
