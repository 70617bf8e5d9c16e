"""Which files of an archive or a folder belong together, by their names alone."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from curation.imports.layouts.agents import harbor, terminal_bench
from curation.imports.layouts.assistants import cline, kimi

LINES = (".jsonl", ".ndjson")
_NUMBERED = re.compile(r"(?:event-)?(\d+)\D[^/]*")
# A session of Claude Code has these folders in one of its name.
_SESSION = re.compile(r"(?P<root>(?:[^/]+/)*?)(?P<session>[^/]+)/(?:subagents|tool-results)/")
# Agents of Kimi CLI.
_AGENTS = re.compile(rf"(?P<root>(?:[^/]+/)*?)agents/[^/]+/{re.escape(kimi.FILE)}")
# Terminus writes these beside its trajectory when it summarizes.
_PART = re.compile(r"(?P<root>(?:[^/]+/)*)(?P<session>[^/]+?)\.(?:cont-\d+|summarization-\d+-[^/]+)\.json")


class GroupKind(StrEnum):
    TRIAL = "Harbor trial"
    JOB = "Harbor job"
    TERMINAL_BENCH = "Terminal-Bench trial"
    RUN = "Terminal-Bench run"
    TASK = "Cline task"
    STORAGE = "opencode storage"
    EVENTS = "OpenHands events"
    COMPLETIONS = "OpenHands completions"
    INSPECT = "Inspect log"
    FILE = "file"


# Folders of trials, which have the documents.
OF_TRIALS = (GroupKind.JOB, GroupKind.RUN)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that are read together. Names are relative to `root`, which is empty or ends with `/`.

    `main` is the file that others of a `FILE` belong to.
    """

    kind: GroupKind
    root: str
    names: Sequence[str]
    main: str = ""


def group_files(names: Sequence[str]) -> list[FileGroup]:
    """Return the groups in the order of their first names. A file is in the outermost folder that is a group."""
    ordered = sorted(names)
    entries: dict[str, set[str]] = defaultdict(set)
    for name in ordered:
        entry = name
        for folder in folders_above(name):
            short = entry[len(folder) :]
            if short in entries[folder]:
                break
            entries[folder].add(short)
            entry = folder
    kinds = {folder: kind for folder, inside in entries.items() if (kind := _kind(folder, inside))}
    found: dict[tuple[GroupKind, str, str], list[str]] = {}
    for name in ordered:
        kind, root, owner = _group_of(name, kinds, entries)
        found.setdefault((kind, root, owner), []).append(name[len(root) :])
    return [FileGroup(kind, root, inside, owner) for (kind, root, owner), inside in found.items()]


def folders_above(name: str) -> Iterator[str]:
    """Yield the folders that contain a file or folder, the nearest first. Each ends with `/`; the last is empty."""
    parts = name.rstrip("/").split("/")[:-1]
    for count in range(len(parts), -1, -1):
        yield "/".join(parts[:count]) + "/" * bool(count)


def number_of(name: str) -> int | None:
    """Return the number that a file of one event has in its name, or None."""
    found = _NUMBERED.fullmatch(name)
    return int(found[1]) if found else None


def _kind(folder: str, inside: Collection[str]) -> GroupKind | None:
    """Return what a folder with these files and folders, which end with `/`, is."""
    if harbor.is_trial(inside):
        return GroupKind.TRIAL
    if harbor.is_job(inside):
        return GroupKind.JOB
    if terminal_bench.is_trial(folder, inside):
        return GroupKind.TERMINAL_BENCH
    if terminal_bench.is_run(inside):
        return GroupKind.RUN
    if {"session/", "message/", "part/"} <= set(inside):
        return GroupKind.STORAGE
    parts = folder.split("/")
    if parts[-2:-1] == ["events"] and all(number_of(name) is not None for name in inside):
        return GroupKind.EVENTS
    if parts[-3:-2] == ["llm_completions"]:
        return GroupKind.COMPLETIONS
    if "_journal/" in inside or ("samples/" in inside and "header.json" in inside):
        return GroupKind.INSPECT
    return None


def _group_of(name: str, kinds: dict[str, GroupKind], entries: dict[str, set[str]]) -> tuple[GroupKind, str, str]:
    """Return the kind and the root of a file's group, and of a `FILE` the file that it belongs to."""
    above = list(folders_above(name))
    for folder in reversed(above):
        kind = kinds.get(folder)
        if kind and (kind not in OF_TRIALS or folder == above[0]):
            return kind, folder, ""
    if name[len(above[0]) :] in (cline.MAIN, *cline.BESIDE) and cline.MAIN in entries[above[0]]:
        return GroupKind.TASK, above[0], ""
    for pattern, ending in ((_SESSION, ".jsonl"), (_PART, ".json")):
        owned = pattern.match(name)
        if owned and owned["session"] + ending in entries[owned["root"]]:
            return GroupKind.FILE, owned["root"], owned["session"] + ending
    owned = _AGENTS.fullmatch(name)
    if owned and kimi.FILE in entries[f"{owned['root']}agents/main/"]:
        return GroupKind.FILE, owned["root"], kimi.MAIN
    return GroupKind.FILE, above[0], name[len(above[0]) :]
