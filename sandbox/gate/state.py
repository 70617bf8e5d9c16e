"""The state of a sandbox: every path below the folders that the agent may write, read by `snapshot.pl`."""

import functools
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from sandbox.errors import SandboxFailed
from sandbox.protocol import ROOTS, TEMPORARY, SandboxSession, StateDigest

# A snapshot is output of a command, so a session that takes one allows this much.
SNAPSHOT_BYTES = 8 * 1024 * 1024
DIGEST_SECONDS = 30.0
PLAIN_FILE, PLAIN_FOLDER = 0o644, 0o755
_DIGEST = re.compile(r"(\d+) ([0-9a-f]{64})  -\n")


@dataclass(frozen=True, slots=True)
class PathEntry:
    """A path. `kind` is file, folder, link or other; `data` is a file's content or a link's target.

    `data` is None for a large file, which `digest` identifies; it has `size` bytes in `lines`. One that is to be made
    has `runs`: pieces of its content, and how often each is repeated.
    """

    kind: str
    mode: int = PLAIN_FILE
    data: bytes | None = b""
    digest: str = ""
    size: int = 0
    lines: int = 0
    runs: tuple[tuple[str, int], ...] = ()

    @property
    def text(self) -> str | None:
        """The content of a text file, else None."""
        if self.kind != "file" or self.data is None or b"\0" in self.data:
            return None
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return None

    def same_content(self, other: "PathEntry | None") -> bool:
        """Whether kind and content are equal; blanks and empty lines do not count in text."""
        if other is None or self.kind != other.kind:
            return False
        if self.kind == "file" and self.text is not None and other.text is not None:
            return _words(self.text) == _words(other.text)
        return (self.data, self.digest, self.runs) == (other.data, other.digest, other.runs)


State = Mapping[str, PathEntry]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`processes` counts the agent's processes that were running."""

    paths: State
    processes: int


@dataclass(frozen=True, slots=True)
class StateChange:
    """A path before and after the reference ran; None if the path does not exist."""

    before: PathEntry | None
    after: PathEntry | None

    @property
    def only_mode(self) -> bool:
        return self.before is not None and self.before.kind != "link" and self.before.same_content(self.after)


Changes = Mapping[str, StateChange]


@functools.cache
def snapshot_command() -> str:
    """The command that prints the state. Its programs are named by their paths: the agent may have changed PATH."""
    text = files("sandbox.gate").joinpath("snapshot.pl").read_text()
    return f"/usr/bin/perl -e {shlex.quote(text)} {' '.join(ROOTS)} {TEMPORARY[0]}"


@functools.cache
def digest_command() -> str:
    """The command that prints its own process id and the SHA-256 of the state, with the variables of the shell."""
    state = f"set +aex; umask; (unset OLDPWD; export -p); {snapshot_command()}"
    return f'state=$({state}); printf "%s " $$; printf %s "$state" | /usr/bin/sha256sum'


def state_digest(session: SandboxSession) -> StateDigest:
    """Raises `SandboxFailed` if the state cannot be read."""
    result = session.exec(digest_command(), DIGEST_SECONDS)
    found = _DIGEST.fullmatch(result.output)
    if result.exit_code or found is None:
        raise SandboxFailed("The state of the sandbox could not be read.")
    return StateDigest(int(found[1]), found[2])


def read_snapshot(output: str) -> Snapshot:
    """Raises `SandboxFailed` for output that was cut or disturbed: then the state is not known."""
    lines = output.splitlines()
    if not lines or not lines[-1].startswith("processes "):
        raise SandboxFailed("The state of the sandbox could not be read.")
    try:
        return Snapshot(dict(map(_read_line, lines[:-1])), int(lines[-1].split()[1]))
    except ValueError:
        raise SandboxFailed("The state of the sandbox could not be read.") from None


def changes_between(before: State, after: State) -> dict[str, StateChange]:
    """What differs, by path. Pipes and sockets carry work but are no result."""
    found: dict[str, StateChange] = {}
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old != new and "other" not in (old and old.kind, new and new.kind):
            found[path] = StateChange(old, new)
    return found


def is_temporary(path: str) -> bool:
    """Temporary folders belong to nobody's result: their paths count only if the checker names them."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in TEMPORARY)


def _words(text: str) -> list[list[str]]:
    return [words for line in text.splitlines() if (words := line.split())]


def _read_line(line: str) -> tuple[str, PathEntry]:
    kind, mode, path, data, size = line.split(" ")
    name = bytes.fromhex(path).decode(errors="surrogateescape")
    if data.startswith("="):
        return name, PathEntry(kind, int(mode, 8), bytes.fromhex(data[1:]))
    digest, _, lines = data[1:].partition(":")
    return name, PathEntry(kind, int(mode, 8), None, digest, int(size), int(lines or 0))
