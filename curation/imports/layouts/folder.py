"""The documents in an archive or a folder, and what became of each file.

Names are kept in memory, and of contents one document at a time.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from curation.imports.layouts.account import NO_RUN, REPLACED, UNNAMED, UNREAD, DocumentReading
from curation.imports.layouts.agents import (
    atif,
    harbor,
    inspect_log,
    mlflow,
    openhands,
    smolagents,
    swe_agent,
    swe_bench,
    terminal_bench,
    traces,
)
from curation.imports.layouts.assistants import (
    agent_logs,
    aider,
    chat_logs,
    chatgpt,
    claude_code,
    cline,
    goose,
    kimi,
    session_lines,
)
from curation.imports.layouts.clean import clean
from curation.imports.layouts.files import MB, Files, all_values, beside, decoded_rows, values_of
from curation.imports.layouts.groups import LINES, FileGroup, GroupKind, folders_above, group_files, number_of
from curation.imports.layouts.images import Beside
from curation.imports.layouts.recognise import LOGS, ODD_VALUE, odd_reason, read, recognise
from curation.imports.layouts.rows.envelopes import rows_in
from curation.imports.layouts.session import AgentSession, Json, SessionOrigin, SessionOutcome
from curation.imports.sources.array import split_array
from curation.imports.sources.rows import BadRow, RowRefused, SourcePosition, SourceRow
from curation.imports.sources.text_rows import BOM, RawRow, decode, split_lines

START = SourcePosition()
# The calls of a trace repeat what was said before, so a trace may be as many times as long as a row.
_TRACE = 4
_TRAJECTORY = re.compile(r"(?P<instance>[^/]+)\.traj(\.json)?")
_TRAJECTORIES = (".traj", ".traj.json", "output.jsonl")
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
# Files of an export of ChatGPT begin with the id by which messages name them.
_EXPORTED = re.compile(r"file[-_][A-Za-z0-9]+")
_NO_OBJECTS = "ignored: they are no JSON objects"
_DOCUMENTS = (".json", ".traj", ".har", ".af")
# What `datasets.save_to_disk` writes beside the rows of a data set, or above several.
_OF_DATA_SETS = ("state.json", "dataset_info.json", "dataset_dict.json")
# What becomes of a file beside another one: the context of Kimi CLI, a short transcript of Antigravity, and a reward.
_BESIDE = (
    (re.compile(r"context[^/]*\.jsonl"), kimi.FILE, f"ignored: {kimi.FILE} has its messages"),
    (re.compile(r"transcript\.jsonl"), "transcript_full.jsonl", "ignored: transcript_full.jsonl has its messages"),
    (re.compile(re.escape(session_lines.REWARD)), session_lines.STEPS, "reward"),
)
# Reports of SWE-bench and predictions: `report.json`, `MODEL.RUN.json`, `preds.json` and others.
_RESULTS = re.compile(r"[^/]*(preds|report|results|eval)[^/]*\.jsonl?|[^/]+\.[^/]+\.json", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Document:
    """What is in a file or folder, or in a line or item of a file: `name` then ends with `:` and its number from 1.

    A row of data has no `reading` and is in `row`. A document that is not readable has the reason in `refused`, and
    `is_cut` if its file ends there too early. `value` is the JSON of one that is not in several files. `beside` reads a
    file by its path relative to the document. `after` is where its file continues, for lines and items.
    """

    name: str
    reading: DocumentReading | None = None
    row: SourceRow | None = None
    refused: str = ""
    value: Json = field(default_factory=dict)
    beside: Beside = lambda path: None
    after: SourcePosition = START
    is_cut: bool = False


@dataclass(slots=True)
class DocumentFolder:
    """`open` gets one of the names and returns a seekable file. Documents of more than `longest` bytes are refused.

    `became` has the layout of each file, or why it was ignored, when the documents of its group were read. `is_row`
    says whether a document without a layout may be a row; others are ignored, such as metadata beside a session.
    """

    names: Sequence[str]
    open: Callable[[str], BinaryIO]
    longest: int = 64 * MB
    is_row: Callable[[Json], bool] = lambda value: True
    became: dict[str, str] = field(default_factory=dict)
    groups: list[FileGroup] = field(init=False)
    _reports: dict[str, list[str]] = field(default_factory=dict)
    _outcomes: dict[str, dict[str, SessionOutcome]] = field(default_factory=dict)
    _data_sets: set[str] = field(default_factory=set)
    _exports: set[str] = field(default_factory=set)
    _exported: dict[str, str] = field(default_factory=dict)
    _known: frozenset[str] = frozenset()
    _untold: dict[str, str] = field(default_factory=dict)
    _subagents: dict[str, str] | None = None

    def __post_init__(self) -> None:
        self.groups = group_files(self.names)
        self._known = frozenset(self.names)
        above = {folder for name in self.names if name.endswith(_TRAJECTORIES) for folder in folders_above(name)}
        arrows = (name for name in self.names if name.endswith(".arrow"))
        self._data_sets = {folder for name in arrows for folder in islice(folders_above(name), 2)}
        for name in self.names:
            folder = next(iter(folders_above(name)))
            if chatgpt.is_export(name[len(folder) :]):
                self._exports.add(folder)
            if named := _EXPORTED.match(name[len(folder) :]):
                self._exported[named[0]] = name
            if folder in above and _RESULTS.fullmatch(name[len(folder) :]) and not name.endswith(_TRAJECTORIES):
                self._reports.setdefault(folder, []).append(name)

    def documents(self, start: int = 0, after: SourcePosition = START) -> Iterator[tuple[int, Document]]:
        """Yield each document with the number of its group, from the group `start` on, and there from `after` on."""
        for number, group in enumerate(islice(self.groups, start, None), start):
            for document in self.read(group, after if number == start else START):
                yield number, document

    def read(self, group: FileGroup, after: SourcePosition = START) -> Iterator[Document]:
        """Yield the documents of a group. A file of lines or a list is read from `after` on."""
        files = Files(group.root, group.names, self.open, self.longest, group.main, after)
        try:
            for document in _READ[group.kind](self, files):
                yield replace(_with_faults(document, files), beside=partial(self._read_sibling, group))
        except RowRefused as refused:
            yield Document(_name(group), refused=str(refused))
        except ODD_VALUE as error:
            yield Document(_name(group), refused=odd_reason(error))
        for name in group.names:
            unread = UNNAMED if name.lower().endswith(_PICTURES) else UNREAD
            self.note(group.root + name, files.became.get(name, unread))

    def note(self, name: str, word: str) -> None:
        """Note what became of a file, unless that is known."""
        if name not in self.became:
            self.became[name] = self._untold[name] = word

    def told(self) -> dict[str, str]:
        """Return what became of the files that were read since this was last called."""
        told, self._untold = self._untold, {}
        return told

    def _read_sibling(self, group: FileGroup, path: str) -> bytes | None:
        """Return the content of a file that a document of the group names, such as an image."""
        name = beside(group.root + group.main, path)
        if name not in self._known and (found := _EXPORTED.match(path)):
            name = self._exported.get(found[0], "")
        if name not in self._known:
            # Of files that are read together, any folder may have the document.
            inside = (one for one in group.names if group.kind is not GroupKind.FILE and one.endswith(f"/{path}"))
            name = group.root + next(inside, "")
        if name not in self._known:
            return None
        self.note(name, "a file that a document names")
        with self.open(name) as file:
            return file.read(self.longest + 1)

    def _trial(self, files: Files) -> Iterator[Document]:
        yield Document(files.root.rstrip("/") or ".", harbor.read(files))

    def _job(self, files: Files) -> Iterator[Document]:
        files.became.update(dict.fromkeys(files.names, "ignored: the trials have it"))
        return iter(())

    def _terminal_bench(self, files: Files) -> Iterator[Document]:
        """Read a trial with the metadata of its run above it, and the logs of its agent by their own layouts."""
        above = (f"{folder}{terminal_bench.RUN}" for folder in folders_above(files.root))
        run = next((name for name in above if name in self._known), "")
        outer = Files("", [run], self.open, self.longest)
        logs = [files.root + name for name in files.names if name.startswith(terminal_bench.LOGS)]
        inner = DocumentFolder(logs, self.open, self.longest)
        logged = [one for _, found in inner.documents() if found.reading for one in found.reading.sessions]
        told = {name: word for name, word in inner.told().items() if not word.startswith("row")}
        files.became.update((name.removeprefix(files.root), word) for name, word in told.items())
        about = (outer.object(run, GroupKind.RUN) or {}) if run else {}
        yield Document(files.root.rstrip("/") or ".", terminal_bench.read(files, about, logged))

    def _task(self, files: Files) -> Iterator[Document]:
        yield Document(files.root + cline.MAIN, cline.read(files))

    def _storage(self, files: Files) -> Iterator[Document]:
        """Read each session in the folder where opencode keeps them, a file for each message and each of its parts."""
        below: dict[str, list[str]] = {}
        for name in sorted(files.names):
            below.setdefault(name.rpartition("/")[0], []).append(name)
        for name in (one for one in files.names if one.startswith("session/")):
            about = files.object(name, GroupKind.STORAGE) or {}
            messages = []
            for said in below.get(f"message/{about.get('id')}", ()):
                info = files.object(said, GroupKind.STORAGE) or {}
                parts = [files.object(part, GroupKind.STORAGE) for part in below.get(f"part/{info.get('id')}", ())]
                messages.append({"info": info, "parts": parts})
            yield self._document(files.root + name, {"info": about, "messages": messages})

    def _events(self, files: Files) -> Iterator[Document]:
        events = [
            files.json(name, GroupKind.EVENTS) for name in sorted(files.names, key=lambda name: number_of(name) or 0)
        ]
        folder = PurePosixPath(files.root).parent
        yield self._document(str(folder), {"id": folder.name, "events": events})

    def _completions(self, files: Files) -> Iterator[Document]:
        """Read the last call of a run, which has the messages of those before."""
        *before, last = sorted(files.names, key=lambda name: name.rpartition("-")[2])
        files.became.update(dict.fromkeys(before, "ignored: the last call has its messages"))
        document = self._document(files.root + last, files.object(last, GroupKind.COMPLETIONS) or {})
        yield self._with_instance(document, PurePosixPath(files.root).name)

    def _inspect(self, files: Files) -> Iterator[Document]:
        """Read the samples of a log beside its header."""
        start = "_journal/start.json"
        header = files.object("header.json" if "header.json" in files.names else start, "the header of the log")
        samples = [name for name in files.names if name.startswith("samples/")]
        for name in files.names:
            files.became.setdefault(name, "ignored: the samples have it")
        if not samples:
            yield Document(files.root or start, refused="The Inspect log has no samples.")
        for name in samples:
            try:
                sample = files.json(name, GroupKind.INSPECT)
            except RowRefused as refused:
                yield Document(files.root + name, refused=str(refused))
            else:
                yield self._read(files.root + name, inspect_log.read, sample, header)

    def _file(self, files: Files) -> Iterator[Document]:
        if self._is_report(files):
            return
        if known := self._known_beside(files):
            files.became[files.main] = known
            return
        if files.main.lower().endswith(LINES):
            yield from self._lines(files)
        elif files.main.lower().endswith(_DOCUMENTS):
            yield from self._json(files)
        elif is_database(files.main) or self._begins(files.root + files.main, (goose.MAGIC,)):
            yield from self._database(files)
        elif not is_history(files.main) and self._begins(files.root + files.main, (b"{", b"[")):
            yield from self._json(files)
        elif is_history(files.main) or len(self.names) == 1:
            text = files.text(files.main, aider.NAME)
            if not aider.fits(text):
                raise RowRefused(f"{files.main} is no history of Aider")
            yield self._read(files.root + files.main, aider.read, text)

    def _known_beside(self, files: Files) -> str:
        """Return what becomes of a file that is not read, or with another one, or an empty text."""
        if files.main in _OF_DATA_SETS and files.root in self._data_sets:
            return "ignored: it is about the files of a data set"
        if files.main in chatgpt.BESIDE and files.root in self._exports:
            return "ignored: the export's conversations are in another file"
        known = (
            word for name, other, word in _BESIDE if name.fullmatch(files.main) and files.root + other in self._known
        )
        return next(known, "")

    def _lines(self, files: Files) -> Iterator[Document]:
        """Read a file of lines: a log or the events of one session, or a document or row in each."""
        name = files.root + files.main
        with self.open(name) as file:
            head = values_of(islice(split_lines(file, START, self.longest), agent_logs.HEAD))
        if any(map(claude_code.is_line, head)):
            inner = sorted(part for part in files.names if part != files.main and part.endswith(LINES))
            beside = self._files_of_subagents()
            if name in beside:
                files.became[files.main] = claude_code.NAME
                return
            inner += [part.removeprefix(files.root) for part, session in beside.items() if session == name]
            main, *subagents = (self._session_lines(files, part, claude_code.NAME) for part in (files.main, *inner))
            yield self._read(name, claude_code.read, main, subagents)
        elif any(map(kimi.is_line, head)):
            parts = sorted(part for part in files.names if part != files.main)
            agents = {part.split("/")[-2]: self._session_lines(files, part, kimi.NAME) for part in parts}
            lines = self._session_lines(files, files.main, kimi.NAME)
            yield self._read(name, kimi.read, lines, agents, kimi.session_of(name))
        elif agent_logs.fits_lines(head):
            yield self._log(files)
        elif head and all(map(openhands.is_event, head)):
            yield self._document(name, {"events": self._read_document(files, files.main, GroupKind.EVENTS)})
        elif head and chat_logs.is_gemini_head(head[0]):
            lines = self._read_document(files, files.main, chat_logs.GEMINI)
            yield self._document(name, chat_logs.gemini_session(lines))
        elif log := next(((layout, read_lines) for layout, fits, read_lines in LOGS if fits(head)), None):
            yield self._read(name, log[1], self._session_lines(files, files.main, log[0]))
        elif session_lines.is_session(head):
            lines = self._read_document(files, files.main, "messages")
            yield self._document(name, session_lines.session_of(lines, files.faults))
        elif head and session_lines.is_step(head[0]):
            lines, reward = self._read_document(files, files.main, "steps"), files.root + session_lines.REWARD
            score = Files("", [reward], self.open).text(reward, "reward") if reward in self._known else ""
            task = files.root.rstrip("/").rpartition("/")[2]
            yield self._document(name, session_lines.run_of(lines, task, score))
        elif head and all(map(_is_span, head)):
            files.became[files.main] = traces.NAME
            with self.open(name) as file:
                yield from self._traces(file, files)
        else:
            yield from self._rows(files, split_lines)

    def _files_of_subagents(self) -> Mapping[str, str]:
        """Return the files of subagents of Claude Code that are beside the session which they name, with its file."""
        if self._subagents is None:
            self._subagents = {}
            for name in filter(claude_code.is_of_subagent, self.names):
                try:
                    with self.open(name) as file:
                        first = next(iter(values_of(islice(split_lines(file, START, self.longest), 1))), {})
                except RowRefused:  # of a damaged file, which is refused where it is read
                    continue
                session = f"{next(folders_above(name))}{first.get('sessionId')}.jsonl"
                if first.get("isSidechain") and session in self._known:
                    self._subagents[name] = session
        return self._subagents

    def _database(self, files: Files) -> Iterator[Document]:
        """Read a copy of a database, whose reader needs a file of its own."""
        name = files.root + files.main
        files.became[files.main] = goose.NAME
        with tempfile.TemporaryDirectory() as folder, self.open(name) as file:
            copy = Path(folder, "sessions.db")
            with copy.open("wb") as into:
                shutil.copyfileobj(file, into, MB)
            for number, session in enumerate(goose.sessions_in(copy, self.longest), 1):
                yield self._document(f"{name}:{number}", session)

    def _begins(self, name: str, beginnings: tuple[bytes, ...]) -> bool:
        """Whether the only file begins so, under any name."""
        if len(self.names) > 1:
            return False
        with self.open(name) as file:
            return file.read(512).removeprefix(BOM).lstrip().startswith(beginnings)

    def _session_lines(self, files: Files, name: str, becomes: str) -> list[Json]:
        """Return the lines of one session that are objects. The place of characters that were replaced is kept."""
        cleaned, replaced = clean(self._read_document(files, name, becomes), "lines")
        files.replaced.extend(replaced)
        return cast(list[Json], cleaned)

    def _read_document(self, files: Files, name: str, becomes: str) -> list[Json]:
        """Return the objects in the lines of a file that is one document. Raises `RowRefused`."""
        files.became[name] = becomes
        with self.open(files.root + name) as file:
            return all_values(split_lines(file, START, self.longest), name, files)

    def _traces(self, file: BinaryIO, files: Files) -> Iterator[Document]:
        """Read a file of spans: all together, or of a long file those of each trace, by where they are."""
        name = files.root + files.main
        if file.seek(0, os.SEEK_END) <= self.longest:
            lines = split_lines(file, START, self.longest)
            yield self._read(name, traces.read_rows, values_of(lines, files.main, files))
            return
        places: dict[str, list[SourcePosition]] = {}
        before = START
        for raw in split_lines(file, START, self.longest):
            for row in values_of([raw], files.main, files):
                places.setdefault(traces.trace_of(row), []).append(before)
            before = raw.after
        for trace, of_trace in places.items():
            raws = (next(split_lines(file, place, self.longest)) for place in of_trace)
            try:
                rows = all_values(raws, f"the trace {trace}", replace(files, root="", longest=_TRACE * self.longest))
            except RowRefused as refused:
                yield Document(name, refused=str(refused))
            else:
                yield self._read(name, traces.read_rows, rows)

    def _json(self, files: Files) -> Iterator[Document]:
        """Read a file with one document, with a list of them, with the messages or events of one, or with one in each
        line, which its name does not say."""
        name = files.root + files.main
        with self.open(name) as file:
            if self._has_lines(file):
                yield from self._lines(files)
                return
            file.seek(0)
            if file.read(512).removeprefix(BOM).lstrip().startswith(b"["):
                first = values_of(islice(split_array(file, START, self.longest), 1))
                if first and _is_span(first[0]) and file.seek(0, os.SEEK_END) <= self.longest:
                    files.became[files.main] = traces.NAME
                    spans = values_of(split_array(file, START, self.longest), files.main, files)
                    yield self._read(name, traces.read_rows, spans)
                    return
                if not first or not any(fits(first[0]) for fits in _LISTED.values()):
                    yield from self._rows(files, split_array)
                    return
        value = files.json(files.main, "document")
        if isinstance(value, list):
            value = {next(name for name, fits in _LISTED.items() if fits(value[0])): value}
        if not isinstance(value, dict):
            raise RowRefused(f"{name} is neither an object nor a list")
        if agent_logs.fits(value):
            yield self._log(files)
            return
        layout = recognise(value)
        if layout is None and (inside := rows_in(value)):
            files.became[files.main] = "rows"
            yield from self.rows(name, (SourceRow(at, one, START) for at, one in enumerate(inside)))
            return
        if layout is None and len(self.names) > 1 and not self.is_row(value):
            files.became[files.main] = NO_RUN
            return
        files.became[files.main] = layout.name if layout else "row"
        options: dict[str, Any] = (
            {"find": lambda path: files.object(beside(files.main, path), atif.NAME)} if atif.fits(value) else {}
        )
        document = self._document(name, value, **options)
        trajectory = _TRAJECTORY.fullmatch(PurePosixPath(name).name)
        yield self._with_instance(document, trajectory["instance"]) if trajectory else document

    def _has_lines(self, file: BinaryIO) -> bool:
        """Whether the first line is a whole value, and another line follows."""
        lines = (raw for raw in split_lines(file, START, self.longest) if raw.text or raw.refusal)
        first, second = next(lines, None), next(lines, None)
        return first is not None and second is not None and isinstance(decode(first), SourceRow)

    def _log(self, files: Files) -> Document:
        """Read a log from a disk, with the files of its subagents beside it."""
        with tempfile.TemporaryDirectory() as folder:
            for part in files.names:
                path = Path(folder, part)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(files.bytes(part, agent_logs.NAME) or b"")
            return self._read(files.root + files.main, agent_logs.read, Path(folder, files.main))

    def _rows(self, files: Files, split: Callable[..., Iterable[RawRow]]) -> Iterator[Document]:
        files.became[files.main] = "rows"
        with self.open(files.root + files.main) as file:
            yield from self.rows(files.root + files.main, decoded_rows(split(file, files.after, self.longest)))

    def rows(self, name: str, found: Iterable[SourceRow | BadRow]) -> Iterator[Document]:
        """Yield the documents in the rows of a file, or the rows themselves."""
        for row in found:
            place = f"{name}:{row.offset + 1}"
            if isinstance(row, BadRow):
                yield Document(place, refused=row.reason, after=row.after, is_cut=row.is_cut)
            else:
                document = self._document(place, row.value, replace(row, file=name))
                if document.reading:
                    document.reading.account.count_faults(row.faults)
                yield replace(document, after=row.after)

    def _document(self, name: str, value: Json, row: SourceRow | None = None, **options: Any) -> Document:
        layout = recognise(value)
        if layout is None:
            return Document(name, row=row or SourceRow(0, value, SourcePosition(1), file=name), value=value)
        return replace(self._read(name, partial(read, **options), layout, value), value=value)

    def _read(self, name: str, reader: Callable[..., DocumentReading], *given: object) -> Document:
        try:
            found = reader(*given)
        except RowRefused as refused:
            return Document(name, refused=str(refused))
        except ODD_VALUE as error:
            return Document(name, refused=odd_reason(error))
        return Document(name, self._with_outcomes(found, name))

    def _with_instance(self, document: Document, instance: str) -> Document:
        """Return the document with the instance that its file is named by, for sessions that name none."""
        if document.reading is None:
            return document
        sessions = [
            one
            if one.origin.instance_id
            else replace(one, origin=SessionOrigin.of_instance(instance, one.origin.attempt, id=instance))
            for one in document.reading.sessions
        ]
        return replace(
            document, reading=self._with_outcomes(replace(document.reading, sessions=sessions), document.name)
        )

    def _with_outcomes(self, reading: DocumentReading, name: str) -> DocumentReading:
        return replace(reading, sessions=[self._with_outcome(session, name) for session in reading.sessions])

    def _with_outcome(self, session: AgentSession, name: str) -> AgentSession:
        """Return the session with its outcome in a report beside the file or above it, the nearest first."""
        instance, verdict = session.origin.instance_id, session.verdict
        if verdict.outcome is not SessionOutcome.UNKNOWN or session.metadata.get(swe_agent.CHOSEN) is False:
            return session
        for folder in folders_above(name):
            if folder in self._reports and (outcome := self._outcomes_in(folder).get(instance)):
                rewards = {**verdict.rewards, "resolved": float(outcome is SessionOutcome.SOLVED)}
                return replace(session, verdict=replace(verdict, outcome=outcome, rewards=rewards))
        return session

    def _is_report(self, files: Files) -> bool:
        """Whether a file has the outcomes or predictions of trajectories beside or below it."""
        if files.root + files.main not in self._reports.get(files.root, ()):
            return False
        value = _report(files, files.main)
        outcomes = swe_bench.read_outcomes(value)
        if not outcomes and not swe_bench.is_predictions(value):
            return False
        files.became[files.main] = f"outcomes of {len(outcomes)} instances" if outcomes else "ignored: predictions"
        return True

    def _outcomes_in(self, folder: str) -> dict[str, SessionOutcome]:
        if folder not in self._outcomes:
            files = Files("", self._reports[folder], self.open, self.longest)
            reports = (swe_bench.read_outcomes(_report(files, name)) for name in files.names)
            self._outcomes[folder] = {instance: outcome for report in reports for instance, outcome in report.items()}
        return self._outcomes[folder]


_READ: Mapping[GroupKind, Callable[[DocumentFolder, Files], Iterator[Document]]] = {
    GroupKind.TRIAL: DocumentFolder._trial,
    GroupKind.JOB: DocumentFolder._job,
    GroupKind.RUN: DocumentFolder._job,
    GroupKind.TERMINAL_BENCH: DocumentFolder._terminal_bench,
    GroupKind.TASK: DocumentFolder._task,
    GroupKind.STORAGE: DocumentFolder._storage,
    GroupKind.EVENTS: DocumentFolder._events,
    GroupKind.COMPLETIONS: DocumentFolder._completions,
    GroupKind.INSPECT: DocumentFolder._inspect,
    GroupKind.FILE: DocumentFolder._file,
}


# Lists that are one document, by its field, and by their first entry.
_LISTED: Mapping[str, Callable[[Json], bool]] = {
    "events": openhands.is_event,
    "steps": smolagents.is_step,
    "messages": session_lines.has_role,
}


def is_history(name: str) -> bool:
    """Whether a file may be a history of Aider, by its name."""
    return "aider" in name.rpartition("/")[2].lower()


def is_database(name: str) -> bool:
    """Whether a file may be Goose's database of sessions, by its name."""
    return name.rpartition("/")[2].lower() == "sessions.db"


def _is_span(value: Json) -> bool:
    return traces.fits(value) and not mlflow.fits(value)


def _report(files: Files, name: str) -> object:
    """Return the value in a report, or the rows of one of lines."""
    if not name.endswith(LINES):
        return files.json(name, "document")
    with files.open(files.root + name) as file:
        return all_values(split_lines(file, START, files.longest), name, files)


def _with_faults(document: Document, files: Files) -> Document:
    """Return the document with the faults of its files in its account: characters, lines and keys."""
    if document.row and files.faults:
        document = replace(document, row=replace(document.row, faults=[*document.row.faults, *files.faults]))
    if document.reading:
        document.reading.account.count_faults(files.faults)
        for path in files.replaced:
            document.reading.account.count(path, REPLACED)
        if files.unreadable:
            document.reading.account.count("(lines)", _NO_OBJECTS, len(files.unreadable))
            unreadable = [*document.reading.unreadable, *files.unreadable]
            document = replace(document, reading=replace(document.reading, unreadable=unreadable))
    files.replaced.clear()
    files.unreadable.clear()
    files.faults.clear()
    return document


def _name(group: FileGroup) -> str:
    return group.root + group.main if group.main else group.root.rstrip("/")
