"""Import agent turns: each row is a conversation, and its assistant messages become prompts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple
from urllib.parse import urlencode

from django.urls import reverse
from pydantic import Field

from curation.duels.imports.conversation import Conversation, LogDocument, length_of, read_document
from curation.duels.imports.prompts import write_prompts
from curation.duels.imports.sampling import SamplingPlan, order_in_block, pick_turns
from curation.imports.row_kinds import Chunk, ImportKind, ImportTarget, RowPreview, SessionOptions
from curation.imports.sources.rows import BadRow, RowRefused, SourceReader, SourceRow
from curation.projects.settings.data import CHAT, TURNS
from curation.runs.kinds import Json
from curation.runs.models import Run
from judging.answers.facts import acts
from judging.messages import message_text

# Rows by which the kind of data is recognised.
LOOKED_AT = 50


class TurnOptions(SessionOptions):
    """Without `count` all turns are imported, and `windows` and `window_size` have no effect."""

    count: int | None = Field(None, ge=1, le=10_000_000, description="Turns to sample. Empty imports all.")
    seed: int = Field(0, ge=0, le=2**63 - 1, description="The same seed and source give the same turns.")
    windows: int = Field(64, ge=1, le=10_000, description="Parts of the source to sample from.")
    window_size: int = Field(32, ge=1, le=1000, description="Rows to read in each part.")
    turns_per_row: int | None = Field(None, ge=1, le=10_000, description="Most turns of one row.")


class TurnRow(NamedTuple):
    """The conversations of a row, and the turns to import: indexes of messages, counted over all of its
    conversations."""

    offset: int
    document: LogDocument
    turns: list[int]

    def parts(self) -> Iterator[tuple[Conversation, list[int]]]:
        """Yield each conversation with the indexes of its own messages."""
        for conversation in self.document.conversations:
            own = range(conversation.start, conversation.start + len(conversation.messages))
            yield conversation, [turn - conversation.start for turn in self.turns if turn in own]


class TurnKind(ImportKind[TurnOptions, TurnRow]):
    name = "turns"
    title = "Agent turns"
    unit = "turns"
    columns = "messages, trajectory or conversations; Inspect logs; OpenTelemetry, Phoenix and Langfuse traces"
    words: ClassVar[Mapping[str, str]] = {
        "prompts": "New turns",
        "duplicates": "Known turns, not imported again",
        "copies": "Known from another source",
        "doubtful": "Records made doubtful",
        "calls_without_content": "Model calls whose text the trace does not record",
        "calls_unreadable": "Model calls that cannot be read",
    }
    note_words: ClassVar[Mapping[str, str]] = {"copies_of": "Known from", "also_as": "Changed rows are source"}
    options = TurnOptions

    def parse(self, row: SourceRow, options: TurnOptions) -> TurnRow:
        document = read_document(row.value, options.mapping, options.attached)
        turns = [one.start + turn for one in document.conversations for turn in one.turns]
        return TurnRow(
            row.offset, document, pick_turns(turns, most=options.turns_per_row, seed=options.seed, offset=row.offset)
        )

    def links(self, run: Run) -> Sequence[tuple[str, str]]:
        sources = [run.result[name] for name in ("source", "also_as") if run.result.get(name)]
        turns = f"{reverse('prompt-list', args=[run.project.slug])}?{urlencode({'source': sources}, doseq=True)}"
        launch = reverse("run-new", args=[run.project.slug])
        return [("Launch a duel run", f"{launch}?kind=duel"), ("Show the turns", turns)]

    def data_kind(self, entries: Sequence[TurnRow]) -> str:
        conversations = [one for entry in entries[:LOOKED_AT] for one in entry.document.conversations]
        return TURNS if any(acts(one.messages) for one in conversations) else CHAT

    def weight(self, entry: TurnRow) -> int:
        conversations = entry.document.conversations
        return sum(length_of(message) for one in conversations for message in one.messages)

    def write(self, target: ImportTarget, entries: list[TurnRow]) -> dict[str, int]:
        target.read_as(entry.document.layout for entry in entries)
        wanted = [(entry.offset, one, turns) for entry in entries for one, turns in entry.parts() if turns]
        counts = write_prompts(target, wanted)
        documents = [entry.document for entry in entries]
        target.account_for(document.account for document in documents)
        calls = {
            "calls_without_content": sum(document.without_content for document in documents),
            "calls_unreadable": sum(document.unreadable for document in documents),
        }
        return counts | {name: count for name, count in calls.items() if count}

    def preview(self, row: SourceRow, options: TurnOptions) -> RowPreview:
        entry = self.parse(row, options)
        lines = [
            (f"turn {one.start + index}", message_text(one.messages[index]))
            for one, turns in entry.parts()
            for index in turns
        ]
        return RowPreview(entry.document.layout, len(entry.turns), lines, entry.document.account)

    def chunks(self, reader: SourceReader, options: TurnOptions, after: Json) -> Iterator[Chunk[TurnRow]]:
        if options.count is None:
            yield from super().chunks(reader, options, after)
        else:
            yield from _Sampler(self, reader, options, options.count).chunks(after)


class _Sampler:
    """One chunk per block. `after` has the visits done, the turns missing, and those taken from each first block."""

    def __init__(self, kind: TurnKind, reader: SourceReader, options: TurnOptions, count: int) -> None:
        self._kind = kind
        self._reader = reader
        self._options = options
        self._plan = SamplingPlan(reader.count(), count, options.windows, options.window_size, options.seed)
        self._missing = 0

    def chunks(self, after: Json) -> Iterator[Chunk[TurnRow]]:
        done, taken = int(after.get("done", 0)), list(after.get("taken", []))
        self._missing = int(after.get("lacking", 0))
        for number, (block, share, part) in enumerate(self._visits()):
            if number < done:
                continue
            second = share == 0 and part >= 0
            wanted = self._missing + share
            entries, bad, rows = self._take(block, taken[part] if second else 0, wanted)
            found = sum(len(entry.turns) for entry in entries)
            self._missing = wanted - found
            if share:
                taken.append(found)
            state = {"done": number + 1, "lacking": self._missing, "taken": taken}
            # Rows of a block are counted once, at its first visit.
            yield Chunk(entries, [] if second else bad, 0 if second else rows, state)

    def _visits(self) -> Iterator[tuple[int, int, int]]:
        """Yield (block, share, part) in order. Further blocks have no part (-1), a second visit has no share."""
        first = self._plan.first_blocks()
        yield from zip(first, self._plan.shares(), range(len(first)), strict=True)
        if self._missing == 0:
            return
        for block in self._plan.further_blocks():
            yield block, 0, -1
            if self._missing == 0:
                return
        for part, block in enumerate(first):
            yield block, 0, part
            if self._missing == 0:
                return

    def _take(self, block: int, skip: int, wanted: int) -> tuple[list[TurnRow], list[BadRow], int]:
        rows, bad, count = {}, [], 0
        for row in self._reader.window(*self._plan.span(block)):
            count += 1
            if isinstance(row, BadRow):
                bad.append(row)
                continue
            try:
                rows[row.offset] = self._kind.parse(row, self._options)
            except RowRefused as refused:
                bad.append(BadRow(row.offset, str(refused), row.after))
        pairs = [(offset, turn) for offset, entry in rows.items() for turn in entry.turns]
        picked = order_in_block(pairs, seed=self._options.seed, block=block)[skip : skip + wanted]
        return _by_row(rows, picked), bad, count


def _by_row(rows: dict[int, TurnRow], picked: Sequence[tuple[int, int]]) -> list[TurnRow]:
    chosen: dict[int, list[int]] = {}
    for offset, turn in sorted(picked):
        chosen.setdefault(offset, []).append(turn)
    return [TurnRow(offset, rows[offset].document, turns) for offset, turns in chosen.items()]
