"""Edits of a state as the shell commands of a cheating agent."""

import base64
import shlex
from collections.abc import Mapping

from sandbox.gate.state import PLAIN_FILE, PLAIN_FOLDER, PathEntry, State
from sandbox.protocol import PathEdit

# Path → its new entry; None removes it.
Edits = Mapping[str, PathEntry | None]
MAX_SCRIPT = 96 * 1024
_OWNER_WRITES = 0o200


def scripts_of(edits: Edits, state: State) -> list[str]:
    """Return shell scripts that make these edits of `state`, each short enough for one command. Parents come first.

    They start as few programs as possible: there are hundreds of them for one scenario.
    """
    gone = [path for path in edits if edits[path] is None]
    steps = [f"rm -rf -- {' '.join(map(shlex.quote, gone))}\n"] if gone else []
    folders = {path for path, entry in state.items() if entry.kind == "folder"} - set(gone)
    for path in sorted(edits):
        entry = edits[path]
        if entry is not None:
            parent = path.rsplit("/", 1)[0]
            if parent not in folders:
                steps.append(f"mkdir -p {shlex.quote(parent)}\n")
            folders.add(parent)
            steps += _making(path, entry, None if path in gone else state.get(path))
            folders |= {path} if entry.kind == "folder" else set()
    return joined(steps)


def path_edits(edits: Edits) -> list[PathEdit]:
    """Return the same edits for the supervisor of a session. Removals come first, parents before what is in them."""
    gone = [PathEdit(path) for path, entry in edits.items() if entry is None]
    return gone + [_path_edit(path, entry) for path, entry in sorted(edits.items()) if entry is not None]


def _path_edit(path: str, entry: PathEntry) -> PathEdit:
    if entry.runs:
        return PathEdit(path, entry.kind, entry.mode, tuple((piece.encode(), n) for piece, n in entry.runs), entry.size)
    data = entry.data or b""
    return PathEdit(path, entry.kind, entry.mode, ((data, 1),), len(data))


def joined(steps: list[str]) -> list[str]:
    """Join scripts up to the size of one command."""
    scripts: list[str] = []
    for step in steps:
        if scripts and len(scripts[-1].encode()) + len(step.encode()) < MAX_SCRIPT:
            scripts[-1] += step
        else:
            scripts.append(step)
    return scripts


def can_make(entry: PathEntry | None) -> bool:
    """Whether a state with this entry can be made again: the content of a large file is not known."""
    return entry is None or (entry.kind != "other" and (entry.data is not None or bool(entry.runs)))


def _making(path: str, entry: PathEntry, there: PathEntry | None) -> list[str]:
    name, data = shlex.quote(path), entry.data or b""
    in_place = there is not None and there.kind == entry.kind and bool(there.mode & _OWNER_WRITES)
    begin = [] if there is None or in_place else [f"rm -rf {name}\n"]
    mode = there.mode if there is not None and in_place else PLAIN_FOLDER if entry.kind == "folder" else PLAIN_FILE
    if entry.kind == "link":
        return [f"rm -rf {name}\n", f"ln -s {shlex.quote(data.decode(errors='surrogateescape'))} {name}\n"]
    end = [] if entry.mode == mode else [f"chmod {entry.mode:o} {name}\n"]
    if entry.kind == "folder":
        return [*begin, *([] if in_place else [f"mkdir {name}\n"]), *end]
    if there is not None and in_place and there.data == entry.data and there.data is not None:
        return end
    return [*begin, *_writing(name, entry), *end]


def _writing(name: str, entry: PathEntry) -> list[str]:
    data, text = entry.data or b"", entry.text
    if entry.runs:
        made = (f"yes {shlex.quote(piece[:-1])} | head -n {count}" for piece, count in entry.runs)
        return [f"{{ {'; '.join(made)}; }} | head -c {entry.size} > {name}\n"]
    if not data:
        return [f": > {name}\n"]
    if text is not None and len(shlex.quote(text).encode()) < MAX_SCRIPT:
        if text.endswith("\n"):
            return [f"printf '%s\\n' {shlex.quote(text[:-1])} > {name}\n"]
        return [f"printf %s {shlex.quote(text)} > {name}\n"]
    parts = [data[at : at + MAX_SCRIPT // 2] for at in range(0, len(data), MAX_SCRIPT // 2)]
    return [f": > {name}\n", *(f"echo {base64.b64encode(part).decode()} | base64 -d >> {name}\n" for part in parts)]
