"""The import kind `trajectories`: runs of any agent, each with its outcome, and a sample to review."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse
from pydantic import Field

from curation.imports.documents import DocumentReader, DocumentRow
from curation.imports.layouts.messages.write import messages_of
from curation.imports.layouts.reading import Reading
from curation.imports.layouts.recognise import read, recognise
from curation.imports.layouts.rows.mapping import RowMapping
from curation.imports.layouts.rows.read import has_conversation, read_row
from curation.imports.layouts.session import Session
from curation.imports.row_kinds import ImportKind, Options, RowPreview, Target
from curation.imports.sources.open import Opened
from curation.imports.sources.rows import Reader, Row, RowRefused
from curation.projects.models import Scope
from curation.review.imports.content import Trained
from curation.review.imports.decisions import Carried, check_launch, deciding_person, take_over
from curation.review.models import Action
from curation.runs.kinds import Json
from curation.runs.models import Run
from curation.trajectories.imported.save import Saved, save_sessions
from judging.messages import message_text


class TrajectoryOptions(Options):
    """`decisions` makes the labels in the file decisions of the person who imports."""

    mapping: RowMapping | None = Field(None, description="Where rows have their messages, and what columns mean.")
    decisions: bool = Field(False, description="Take over the labels in the file as your decisions.")
    trained: Trained = Field("all", description="Steps that are trained on if none is marked: `all`, or the last one.")


class TrajectoryKind(ImportKind[TrajectoryOptions, Reading]):
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
    }
    options = TrajectoryOptions

    def reader_of(self, source: Opened) -> Reader:
        if source.files is None:
            return source.reader
        return DocumentReader(source.files, longest=settings.MAX_LINE_BYTES, rows=source.rows)

    def claims(self, row: Row) -> bool:
        """Rows of chats may be meant for turns or samples; files of agents, and rows with an outcome, are runs."""
        if isinstance(row, DocumentRow) and row.document.reading is not None:
            return True
        return recognise(row.value) is not None

    def scopes(self, options: Json) -> Sequence[Scope]:
        return [Scope.REVIEW] if options.get("decisions") else []

    def begin(self, run: Run) -> Json:
        check_launch(run)
        return {}

    def links(self, run: Run) -> Sequence[tuple[str, str]]:
        slug = run.project.slug
        shown = f"{reverse('trajectory-list', args=[slug])}?{urlencode({'run': run.pk})}"
        return [("Review", reverse("queue", args=[slug])), ("Show the trajectories", shown)]

    def parse(self, row: Row, options: TrajectoryOptions) -> Reading:
        if isinstance(row, DocumentRow) and row.document.reading is not None:
            return row.document.reading
        if options.mapping is None and (layout := recognise(row.value)) is not None:
            return read(layout, row.value)
        session, account = read_row(row.value, options.mapping)
        if session.endings:
            raise RowRefused("a row with two answers is no run of an agent: import it as samples")
        if not has_conversation(row.value) and options.mapping is None:
            raise RowRefused("a row without a list of messages is no run of an agent: import it as samples")
        return Reading([session], account)

    def weight(self, entry: Reading) -> int:
        return sum(len(str(step["message"])) for session in entry.sessions for step in session.steps)

    def write(self, target: Target, entries: list[Reading]) -> dict[str, int]:
        target.account_for(entry.account for entry in entries)
        sessions = [session for entry in entries for session in entry.sessions]
        layouts = {*target.memory.get("layouts", []), *(session.layout for session in sessions)}
        target.memory["layouts"] = sorted(layouts)
        target.notes["layout"] = ", ".join(sorted(layouts))
        options = self.read_options(target.run.params.get("options", {}))
        saved = save_sessions(target.run, target.source, sessions, unmarked=options.trained == "all")
        return {
            "trajectories": len(saved.new),
            "duplicates": saved.known,
            "without_trajectory": sum(entry.without_trajectory for entry in entries),
            "unreadable": sum(len(entry.unreadable) for entry in entries),
            **take_over(target.run, deciding_person(target.run), _decisions(saved)),
        }

    def preview(self, row: Row, options: TrajectoryOptions) -> RowPreview:
        entry = self.parse(row, options)
        lines = [line for session in entry.sessions for line in _lines(session)]
        layout = ", ".join(sorted({session.layout for session in entry.sessions}))
        return RowPreview(layout, len(entry.sessions), lines, entry.account)


def _decisions(saved: Saved) -> Carried:
    """Return the samples of sessions with a label. An outcome is no decision of a person."""
    alike: dict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    for session, row in saved.new:
        if session.label is not None and row.sample_id is not None:
            action = Action.APPROVE if session.label else Action.REJECT
            alike[action.value, ()].append(row.sample_id)
    return alike


def _lines(session: Session) -> Iterator[tuple[str, str]]:
    """Yield what a preview shows: the ends of the run, its outcome, its first and its last step."""
    rewards = (f"{name} {value:g}" for name, value in session.verdict.rewards.items())
    yield "arrives as", ", ".join([f"{len(session.steps)} steps", session.verdict.outcome, *rewards])
    for label, step in zip(("first step", "last step"), [*session.steps[:1], *session.steps[1:][-1:]], strict=False):
        yield f"{label} ({step['source']})", message_text(messages_of(step)[0])
