"""The import kind `samples`: rows of training data, each with its answer and the decision that it carries."""

from collections.abc import Mapping, Sequence
from typing import ClassVar
from urllib.parse import urlencode

from django.urls import reverse
from pydantic import Field

from curation.imports.row_kinds import ImportTarget, RowPreview, SessionOptions
from curation.imports.sources.rows import RowRefused, SourceRow
from curation.projects.settings.data import CHAT, PREFERENCES, TURNS
from curation.review.imports.content import ImportedRow, Trained, read_imported_row
from curation.review.imports.decisions import (
    LAYOUT,
    DecidingKind,
    ScoreRow,
    deciding_person,
    read_score_row,
    write_scores,
)
from curation.review.imports.write import write_samples
from curation.review.models import STATUS_AFTER
from curation.runs.models import Run
from curation.samples.models import SampleStatus
from judging.answers.facts import acts
from judging.messages import content_of, message_text

# Rows by which the kind of data is recognised.
LOOKED_AT = 50
Entry = ImportedRow | ScoreRow


class SampleOptions(SessionOptions):
    """`decisions` makes the decisions in the file those of the person who imports."""

    decisions: bool = Field(False, description="Take over the decisions in the file. Without, all samples are pending.")
    trained: Trained = Field(
        "marked",
        description="Which earlier assistant messages of a chat row are trained on if none is marked: none, or `all`.",
    )


class SampleImportKind(DecidingKind[SampleOptions, Entry]):
    name = "samples"
    title = "Samples, with their answers and decisions"
    unit = "samples"
    columns = "messages, conversations, prompt and completion (label), chosen and rejected, instruction and output"
    words: ClassVar[Mapping[str, str]] = {
        "samples": "New samples",
        "approved": "Approved by the file",
        "rejected": "Rejected by the file",
        "refused": "Decisions of the file that are refused, as without answers to required questions",
        "pending": "To be decided",
        "duplicates": "Known samples, not imported again",
        "answers": "Answers without a judgement",
        "scores": "Scores",
    }
    note_words: ClassVar[Mapping[str, str]] = {"also_as": "Changed rows are source"}
    options = SampleOptions

    def links(self, run: Run) -> Sequence[tuple[str, str]]:
        slug = run.project.slug
        sources = [run.result[name] for name in ("source", "also_as") if run.result.get(name)]
        shown = f"{reverse('sample-list', args=[slug])}?{urlencode({'source': sources}, doseq=True)}"
        return [("Review", reverse("queue", args=[slug])), ("Show the samples", shown)]

    def claims(self, row: SourceRow) -> bool:
        """A row that goes on after its answer is rather a session with turns. A person may still choose samples."""
        try:
            entry = self.parse(row, SampleOptions())
        except RowRefused:
            return False
        return isinstance(entry, ScoreRow) or entry.content.tail == 0

    def parse(self, row: SourceRow, options: SampleOptions) -> Entry:
        return read_score_row(row) or read_imported_row(
            row.offset, row.value, options.trained, row.file, options.mapping, options.attached
        )

    def data_kind(self, entries: Sequence[Entry]) -> str:
        rows = [entry.content for entry in entries[:LOOKED_AT] if isinstance(entry, ImportedRow)]
        if not rows:
            return ""
        if any(acts([*content.history, *([content.answer] if content.answer else [])]) for content in rows):
            return TURNS
        return PREFERENCES if any(content.other is not None for content in rows) else CHAT

    def weight(self, entry: Entry) -> int:
        if isinstance(entry, ScoreRow):
            return 0
        return sum(len(content_of(message)) for message in entry.content.history)

    def write(self, target: ImportTarget, entries: list[Entry]) -> dict[str, int]:
        scores = [entry for entry in entries if isinstance(entry, ScoreRow)]
        rows = [entry for entry in entries if isinstance(entry, ImportedRow)]
        target.read_as(LAYOUT if isinstance(entry, ScoreRow) else entry.content.layout for entry in entries)
        counts = write_samples(target, rows, deciding_person(target.run))
        target.account_for(row.account for row in rows)
        return {**counts, **write_scores(target, scores, [row.file for row in rows])}

    def preview(self, row: SourceRow, options: SampleOptions) -> RowPreview:
        entry = self.parse(row, options)
        if isinstance(entry, ScoreRow):
            return RowPreview(LAYOUT, 0, [(f"score of {entry.file}", f"{entry.score:g}")])
        content = entry.content
        sides = (("answer", content.answer), ("other answer", content.other))
        lines = [(name, message_text(message)) for name, message in sides if message is not None]
        return RowPreview(
            content.layout,
            int(content.answer is not None),
            [("arrives as", _arrives(entry, options)), *lines],
            entry.account,
        )


def _arrives(entry: ImportedRow, options: SampleOptions) -> str:
    """Say which status the sample of a row will have, and why."""
    named = f" by {', '.join(entry.reviewers)}" if entry.reviewers else ""
    decision = f"the file says {entry.decision}{named}" if entry.decision else "the file has no decision"
    if entry.decision and options.decisions:
        return f"{SampleStatus(STATUS_AFTER[entry.decision]).label.lower()}, as your decision: {decision}"
    return f"pending: {decision}" + (", which is not taken over" if entry.decision else "")
