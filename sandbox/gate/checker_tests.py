"""Tests of the checker on the reference's result: cheap cheats must fail, and the same state gets the same verdict."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from sandbox.agent.action import Ending
from sandbox.gate.attempts import TriedAttempt, fresh_player, must_be, report_on, try_all
from sandbox.gate.cheats import (
    MAX_LINES,
    Attempt,
    agreeing,
    believed,
    is_right,
    left_out,
    mistaken_links,
    pretended,
    swapped,
    wrong_path_attempts,
)
from sandbox.gate.documentation import read_documentation
from sandbox.gate.edits import can_make, scripts_of
from sandbox.gate.foreign import literals_of, scrambled, stuffed
from sandbox.gate.misread import ANY_REASON, REASONS_AS_CODE
from sandbox.gate.neighbours import damaged
from sandbox.gate.play import (
    PlayedSession,
    Reference,
    Rooms,
    check_in,
    checker_line,
    snapshot_after,
    snapshot_in,
)
from sandbox.gate.provider import Traces, find_traces, programs_of
from sandbox.gate.report import Check, GateFinding, ReportLine
from sandbox.gate.stability import background_work, check_stability, differing
from sandbox.gate.state import Changes, PathEntry, State, StateChange, changes_between, is_temporary
from sandbox.protocol import HOME, ROOTS, TEMPORARY, Fixture, SandboxSession

MAX_NAMES = 12
MAX_SOURCES = 8
WAIT_SECONDS = 2.0
RECORD = "A file proves nothing that the agent can write: `asked` tells which programs were really run."
_PATH = re.compile(rf"(?:~|{'|'.join((*ROOTS, *TEMPORARY))})(?:/[\w.+@%,:=-]+)+")
# In `[ -e .done ]` and `test -f done`, where the checker is in the home or in a folder that it has entered.
_TESTED = re.compile(r"(?:\[|!|\btest)\s+-[defhLprsSwx]\s+([\"']?)([\w.][\w.+@%,:=/-]*)\1(?=\s)")
_ENTERED = re.compile(rf"\bcd\s+[\"']?({_PATH.pattern}|{'|'.join((*ROOTS, *TEMPORARY))})")
_CHMODS = re.compile(r"\b(?:chmod|install|umask|setfacl)\b")


@dataclass(frozen=True, slots=True)
class BundleSubject:
    """The bundle's parts beside the task: the texts that lead to the provider, and its marks.

    `findings` come from the texts.
    `scratch` are paths whose content does not matter, `free_order` files whose lines may be in any order.
    """

    told: str = ""
    scratch: tuple[str, ...] = ()
    free_order: tuple[str, ...] = ()
    findings: tuple[GateFinding, ...] = ()

    def is_scratch(self, path: str) -> bool:
        return any(path == mark or path.startswith(f"{mark}/") for mark in self.scratch)


class Base(NamedTuple):
    """The reference's run: the states before and after it, and the changes that count as its result."""

    before: State
    after: State
    changes: dict[str, StateChange]
    traces: Traces
    reference: Reference
    left_alone: list[str]

    @property
    def ending(self) -> Ending:
        return self.reference.ending


def checker_tests(rooms: Rooms, reference: Reference, subject: BundleSubject) -> tuple[list[Check], Changes | None]:
    """Return the checks, and the reference's changes that count as its result; None if the snapshots show no path.

    Raises `SandboxFailed` and `SetupRefused`.
    """
    return rooms.fresh(lambda session: _tests(session, rooms, reference, subject), setup=rooms.roomy())


def _tests(
    session: SandboxSession, rooms: Rooms, reference: Reference, subject: BundleSubject
) -> tuple[list[Check], Changes | None]:
    """All that needs the reference's final state, in one session."""
    checker, ending = rooms.task.checker, reference.ending
    before = snapshot_in(session).paths
    solved = PlayedSession(ending)
    solved.solve(session, reference.commands)
    lines = solved.lines
    ended = snapshot_in(session)
    base = base_of(rooms, reference, subject, before, ended.paths)
    changes = base.changes if ended.paths else None
    shown = _ignored_paths(base, subject)
    found = [finding.check for finding in subject.findings if finding.path not in base.changes]
    if ended.processes:
        session.exec(f"sleep {WAIT_SECONDS:g}", 2 * WAIT_SECONDS)
        late = background_work(ended.paths, snapshot_in(session).paths, base.changes)
        if late:
            return [shown, *found, replace(late, transcript=tuple(lines))], changes
    stable, state = check_stability(session, checker, ending)
    if not stable.passed:
        return [shown, *found, replace(stable, transcript=(*lines, *stable.transcript))], changes
    stable_and_said = [stable, *_reason_as_code(session, checker, ending)]
    tried = try_all(session, checker, _attempts(rooms, subject, base, state), state, ending)
    sources = _sources(session, rooms, base, state)
    stuffing = _stuffing(rooms, base)
    lies = [lie for source in sources for lie in believed(source, state[source], base.changes, stuffing)]
    tried += try_all(session, checker, [lie for lie in lies if not is_right(lie, state, base.changes)], state, ending)
    must_be(session, checker, state, differing)
    again = fresh_player(rooms, reference.commands, base.after, ending)
    first = [check for source in sources for check in _changed_first(rooms, reference, source, base)]
    claims = [*_stale_files(_own_files(rooms, base), base, again), *_pretences(rooms, subject, base)]
    return [shown, *found, *stable_and_said, *_reports(tried, again), *first, *claims], changes


def _reason_as_code(session: SandboxSession, checker: str, ending: Ending) -> Iterator[Check]:
    """Whether a checker that reads the reason of the panic executes it. One that passes with any reason reads none."""
    if not ending.reason or check_in(session, checker, replace(ending, reason=ANY_REASON)).passed:
        return
    for text in REASONS_AS_CODE:
        check = check_in(session, checker, replace(ending, reason=text))
        if check.passed:
            why = f'the checker passes with the reason `{text}`: it executes it. Write "$PANIC_REASON", without `eval`.'
            yield Check("the reason as code", False, why, (checker_line(check),))
            return
    yield Check("the reason as code", True)


def _own_files(rooms: Rooms, base: Base) -> dict[str, PathEntry | None]:
    """The temporary files that the checker makes on the reference's state, also those that it removes at its end. In a
    new sandbox: where it has run before, it may find them."""
    checker = rooms.task.checker

    def work(session: SandboxSession) -> dict[str, PathEntry | None]:
        PlayedSession(base.ending).solve(session, base.reference.commands)
        check = check_in(session, f"rm() {{ :; }}\nrmdir() {{ :; }}\n{checker}", base.ending)
        state = snapshot_after(session, checker).paths
        made = (path for path in check.written if is_temporary(path) and path not in base.after)
        return {path: state[path] for path in made if path in state and can_make(state[path])}

    return rooms.fresh(work, setup=rooms.roomy())


def _stale_files(
    files: dict[str, PathEntry | None], base: Base, again: Callable[[Attempt], PlayedSession]
) -> Iterator[Check]:
    """Whether the checker takes files that the agent left for those that it makes."""
    if not files or not base.changes:
        return
    undone = {path: change.before for path, change in base.changes.items()}
    reason = (
        f"the checker passes when nothing was done and the agent left {', '.join(list(files)[:3])} as a check of the"
        " right state makes them. Make temporary files in $TMPDIR."
    )
    yield again(Attempt("", "", {**undone, **files})).must_fail("files of an earlier check", reason)


def base_of(rooms: Rooms, reference: Reference, subject: BundleSubject, before: State, after: State) -> Base:
    changes = changes_between(before, after)
    traces = find_traces(rooms, reference.commands, changes, subject.told)
    named = set(_named_paths(rooms.task.checker))
    counted = {
        path: change
        for path, change in changes.items()
        if path not in traces.paths and not subject.is_scratch(path) and (not is_temporary(path) or path in named)
    }
    alone = sorted(changes.keys() - counted.keys())
    return Base(before, after, counted, traces, reference, alone)


def _attempts(rooms: Rooms, subject: BundleSubject, base: Base, state: State) -> Iterator[Attempt]:
    stuffing = _stuffing(rooms, base)
    most = max(1, MAX_LINES // max(1, len(base.changes)))
    chmods = bool(_CHMODS.search(base.reference.text))
    for path, change in base.changes.items():
        ordered = path not in subject.free_order
        is_folder = change.after is not None and change.after.kind == "folder"
        if is_folder and not change.only_mode and any(other.startswith(f"{path}/") for other in state):
            continue  # its content counts
        rooms.checkpoint()
        for attempt in left_out(
            path, change, checker=rooms.task.checker, stuffing=stuffing, chmods=chmods, ordered=ordered, most=most
        ):
            if attempt.warns or not is_right(attempt, state, base.changes):
                yield attempt
    paths = [file.path for file in rooms.task.setup.fixtures]
    fixtures = [path for path in paths if not (subject.is_scratch(path) or path in base.traces.paths)]
    yield from damaged(base.changes, fixtures, state, _served(rooms, subject))
    beside = {path: entry for path, entry in state.items() if path not in base.left_alone}
    for attempt in (
        *swapped(base.changes),
        *wrong_path_attempts(base.changes, beside),
        *mistaken_links(base.changes, beside),
        *agreeing(base.changes),
        *pretended(base.changes, _more_names(rooms, base), stuffing, asked=True),
    ):
        if base.changes and not is_right(attempt, state, base.changes):
            yield attempt


def _served(rooms: Rooms, subject: BundleSubject) -> str:
    """The texts of the provider's programs."""
    programs = programs_of(rooms.task.setup.fixtures, subject.told)
    return "\n".join(f"{file.path}\n{file.content.decode(errors='replace')}" for file in programs)


def _sources(session: SandboxSession, rooms: Rooms, base: Base, state: State) -> list[str]:
    """Fixtures, untouched by the reference, whose content the verdict depends on."""
    texts = {file.path for file in rooms.task.setup.fixtures if not file.content.startswith(b"#!")}
    paths = [
        path for path in sorted(texts) if path in state and path not in base.changes and path not in base.traces.paths
    ]
    changed = [Attempt(path, "", {path: _other(state[path])}) for path in paths if state[path].data]
    tried = try_all(session, rooms.task.checker, changed, state, base.ending)
    return [entry.attempt.path for entry in tried if not entry.passed][:MAX_SOURCES]


def _changed_first(rooms: Rooms, reference: Reference, source: str, base: Base) -> Iterator[Check]:
    """Whether the checker passes when the agent first changes the file that it reads, and then solves the rest."""
    entry = base.before.get(source)
    text = entry.text if entry else None
    if entry is None or not base.changes:
        return
    variants = {"emptied": replace(entry, data=b"")}
    if text is not None and len(text.splitlines()) > 1:
        variants["cut to its first line"] = replace(entry, data=text.splitlines(keepends=True)[0].encode())
    for says, changed in variants.items():
        before = scripts_of({source: changed}, base.before)
        played = rooms.play(before=before, commands=reference.commands, ending=base.ending)
        if played.passed:
            reason = (
                f"the checker passes when {source} is {says} before the work: it takes the right result from a file"
                " that the agent may write. Write the right result into the checker, or compare the file's checksum"
                " first."
            )
            yield Check(f"belief in {source}", False, reason, tuple(played.lines))
            return


def _pretences(rooms: Rooms, subject: BundleSubject, base: Base) -> Iterator[Check]:
    """Attempts without the reference, on untouched fixtures: pretences, programs that do nothing, claims in words."""
    stuffing = _stuffing(rooms, base)
    attempts = list(pretended(base.changes, _more_names(rooms, base), stuffing, asked=False))
    programs = {
        file.path: PathEntry("file", file.mode, b"#!/bin/sh\nexit 0\n")
        for file in rooms.task.setup.fixtures
        if file.content.startswith(b"#!")
    }
    if programs:
        attempts.append(Attempt("", f"when {', '.join(programs)} only says that all is well", programs))
    attempts = [attempt for attempt in attempts if not is_right(attempt, base.before, base.changes)]
    forged = _forgeries(base)
    attempts += forged

    def work(session: SandboxSession) -> list[TriedAttempt]:
        state = snapshot_after(session, rooms.task.checker).paths
        return try_all(session, rooms.task.checker, attempts, state, base.ending)

    tried = rooms.fresh(work, setup=rooms.roomy())
    again = fresh_player(rooms, (), base.before, base.ending)
    yield report_on("pretences on untouched fixtures", [entry for entry in tried if entry.attempt not in forged], again)
    if forged:
        yield _forged_traces([entry for entry in tried if entry.attempt in forged], again)
    if not base.changes:
        yield from _only_read(rooms, programs_of(rooms.task.setup.fixtures, subject.told), base.ending)
    words = Ending("panic", " ".join(stuffing.split())[:8000])
    said = "echo 'All that was asked is done; the result is as expected.'"
    reason = "the checker passes when nothing was done and the reason of the panic names everything: it believes words"
    yield rooms.play(after=[said], ending=words).must_fail("claims in words", reason)


def _forgeries(base: Base) -> list[Attempt]:
    """The provider's traces written by hand: alone, and with all results; and the results without them."""
    traces: dict[str, PathEntry | None] = {
        path: base.after[path] for path in sorted(base.traces.paths & base.after.keys()) if can_make(base.after[path])
    }
    results = {path: change.after for path, change in base.changes.items()}
    if not traces:
        return []
    shown = ", ".join(list(traces)[:4])
    alone = Attempt("", f"when nothing was done but write {shown} by hand", traces, advice=RECORD)
    if not results:
        return [alone]
    both = Attempt("", f"when {shown} was written by hand and the provider never asked", {**traces, **results}, True)
    return [alone, both, Attempt("", "without a trace", results, True)]


def _forged_traces(tried: list[TriedAttempt], again: Callable[[Attempt], PlayedSession]) -> Check:
    """Fails if a trace in a file is all that the checker wants, warns if it is a part of that."""
    is_proof = len(tried) == 3 and tried[1].passed and not tried[2].passed
    return report_on("forged traces", tried[:2] if is_proof else tried[:1], again)


def _only_read(rooms: Rooms, programs: list[Fixture], ending: Ending) -> Iterator[Check]:
    """Where there is nothing to do, to have read the documentation is not to have asked."""
    found = read_documentation(rooms, programs)
    calls = "\n".join([*found.helps, *found.topics, *found.usages])
    if calls:
        reason = (
            "the checker passes when the provider's documentation was read and it was never asked: let `asked` want"
            " the arguments that ask for directives"
        )
        yield rooms.play(after=[calls], ending=ending).must_fail("only the documentation", reason)


def _reports(tried: list[TriedAttempt], again: Callable[[Attempt], PlayedSession]) -> Iterator[Check]:
    groups: dict[str, list[TriedAttempt]] = {}
    for entry in tried:
        groups.setdefault(entry.attempt.path, []).append(entry)
    for path, entries in sorted(groups.items()):
        yield report_on(f"cheats on {path}" if path else "pretences after asking", entries, again)


def _ignored_paths(base: Base, subject: BundleSubject) -> Check:
    """Return the check that lists the result paths and the ignored paths, for people."""
    lines = [ReportLine(f"# result: {path}") for path in base.changes]
    for path in base.left_alone:
        kind = "the provider's trace" if path in base.traces.paths else "scratch"
        lines.append(ReportLine(f"# left alone, {kind}: {path}"))
    lines += [ReportLine(f"# order of lines is free: {path}") for path in subject.free_order]
    return Check("what the reference changed", True, "", tuple(lines))


def _stuffing(rooms: Rooms, base: Base) -> str:
    """Everything that an agent could read or guess: fixtures, the provider's output, the checker's own words."""
    setup = rooms.task.setup
    fixtures = [file.content.decode() for file in setup.fixtures if _is_text(file.content)]
    names = "\n".join(path.rsplit("/", 1)[1] for path in base.after)
    return stuffed([*literals_of(rooms.task.checker), *base.traces.said, setup.motd, setup.banner, *fixtures, names])


def _more_names(rooms: Rooms, base: Base) -> list[str]:
    """Paths that the checker or directives name and that are not there, before or after."""
    texts = [
        rooms.task.checker,
        *base.traces.said,
        *(f.content.decode() for f in rooms.task.setup.fixtures if _is_text(f.content)),
    ]
    names = [path for text in texts for path in _named_paths(text)]
    taken = base.before.keys() | base.after.keys()
    return [path for path in dict.fromkeys(names) if path not in taken][:MAX_NAMES]


def _named_paths(text: str) -> list[str]:
    text = text.replace("$HOME/", "~/").replace("${HOME}/", "~/")
    named = [match[0] for match in _PATH.finditer(text)]
    folders = dict.fromkeys([HOME, *(match[1] for match in _ENTERED.finditer(text))])
    named += [f"{folder}/{match[2]}" for match in _TESTED.finditer(text) for folder in folders]
    return [path.replace("~", HOME, 1).rstrip(".,:/") for path in named]


def _other(entry: PathEntry) -> PathEntry:
    text = entry.text
    return replace(entry, data=scrambled(text).encode() if text and scrambled(text) != text else b"")


def _is_text(content: bytes) -> bool:
    try:
        return b"\0" not in content and not content.startswith(b"#!") and content.decode() is not None
    except UnicodeDecodeError:
        return False
