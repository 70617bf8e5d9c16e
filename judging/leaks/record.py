"""The two sides of the leak lint: the hidden pull request, and the history that the agent saw."""

import re
from dataclasses import dataclass
from functools import cached_property

from judging.leaks.tokens import has_extension
from judging.leaks.vocabulary import GENERIC_FILES, GENERIC_PARTS, is_placeholder


@dataclass(frozen=True, slots=True)
class PullRequestRecord:
    """The pull request that belongs to an instance. `files` are paths inside the repository; `issue` is no secret."""

    instance_id: str
    title: str
    issue: str
    description: str
    patch: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a record: field name and character offset (for `files` in the joined lines)."""

    name: str
    offset: int


class RecordText:
    """A searchable record."""

    def __init__(self, record: PullRequestRecord) -> None:
        issue = " ".join(record.issue.split())
        self.texts: dict[str, str] = {"patch": record.patch, "description": record.description}
        self.texts["files"] = "\n".join(record.files)
        # A title that only repeats the issue's is shown to the agent with it.
        self.texts["title"] = "" if " ".join(record.title.split()) in issue else record.title
        self.squashed = {name: squash(text) for name, text in self.texts.items()}
        headers = re.findall(r"(?m)^(?:---|\+\+\+) (?:[ab]/)?(\S+)", record.patch)
        self.paths = tuple(dict.fromkeys(p for p in (*record.files, *headers) if p != "/dev/null"))
        self._new_paths = frozenset(re.findall(r"(?m)^--- /dev/null\n\+\+\+ (?:b/)?(\S+)", record.patch)) | frozenset(
            re.findall(r"(?m)^diff --git a/\S+ b/(\S+)\nnew file mode", record.patch)
        )

    def find(self, name: str) -> Place | None:
        """Find a name at its boundaries, in its own or another usual spelling (`max_size`, `maxSize`, `max-size`)."""
        squashed = squash(name)
        for place, text in self.texts.items():
            if (offset := find_bounded(text, name, "_$")) >= 0:
                return Place(place, offset)
            if find_bounded(self.squashed[place], squashed, "") >= 0 and (match := _respelled(name).search(text)):
                return Place(place, match.start())
        return None

    def find_verbatim(self, text: str) -> Place | None:
        """Find a piece of text as it is."""
        for place, whole in self.texts.items():
            if (offset := whole.find(text)) >= 0:
                return Place(place, offset)
        return None

    def find_path(self, path: str) -> Place | None:
        """Find a file or folder of the record that this path names, wholly or by its end."""
        for known in self.paths:
            if is_same_path(path, known) or f"/{path.rstrip('/')}/" in f"/{known}":
                return self.find_verbatim(known)
        place = self.find_verbatim(path)
        if place is None:
            return None
        offset = find_bounded(self.texts[place.name], path, "_-")
        return Place(place.name, offset) if offset >= 0 else None

    def defines(self, word: str) -> Place | None:
        """Find a plain word where the patch uses it as a name: defines it, or calls it as a method."""
        if word not in self.texts["patch"]:
            return None
        name = re.escape(word)
        match = re.search(
            rf"\b(?:def|class|function|func|fn|struct|enum|interface|trait|type|const|let|var|module)"
            rf"\s+(?:\([^)\n]*\)\s*)?(?:self\.)?{name}\b|[.>:]{name}\(",
            self.texts["patch"],
        )
        return Place("patch", match.start()) if match else None

    def was_there_before(self, name: str) -> bool:
        """Whether a name is in a part of the patch that the repository already had, where a search could find it."""
        return find_bounded(self._old_text, name, "_") >= 0

    @cached_property
    def _old_text(self) -> str:
        lines = [line[1:] for line in self.texts["patch"].splitlines() if line.startswith((" ", "-", "@@"))]
        return "\n".join([*lines, *(path for path in self.paths if path not in self._new_paths)])


class HistoryText:
    """The searchable text that the agent saw. `repository` has the words of its name, which are no secret."""

    def __init__(self, history: str, repository: frozenset[str]) -> None:
        self.text = history
        self.repository = repository
        self.lower = history.lower()

    @cached_property
    def _squashed(self) -> str:
        return squash(self.text)

    def knows(self, name: str) -> bool:
        """Whether a name is in the history, in its own or another usual spelling."""
        if find_bounded(self.text, name, "") >= 0:
            return True
        squashed = squash(name)
        return find_bounded(self._squashed, squashed, "") >= 0

    def knows_word(self, word: str) -> bool:
        """Whether a word is in the history in any case, also with an ending (`flatten`, `flattened`)."""
        return word.lower() in self.lower

    def knows_phrase(self, name: str) -> bool:
        """Whether the parts of a name are in the history as adjacent words (`retry budget` for `retryBudget`)."""
        parts = name_parts(name)
        return len(parts) > 1 and re.search(r"\b" + r"[\s_-]{0,2}".join(map(re.escape, parts)), self.lower) is not None

    def knows_path(self, path: str) -> bool:
        """Whether the history shows this path, its end, or its parts in a listing; a dotted module counts as a path."""
        if self._shows(path):
            return True
        module = re.sub(r"\.pyi?$", "", path)
        dotted = module.replace("/", ".")
        if "." in dotted and self.knows(dotted) and dotted != path:
            return True
        folder, _, name = path.rpartition("/")
        generic = name in GENERIC_FILES or (name in GENERIC_PARTS and folder)
        if not generic and not self._shows_file(name, folder):
            return False
        return all(self._knows_part(part) for part in folder.split("/") if part)

    def _shows_file(self, name: str, folder: str) -> bool:
        """Whether a file's name occurs alone (as `ls` prints it) or after a folder that agrees with this one."""
        parent = folder.rsplit("/", 1)[-1]
        for match in re.finditer(re.escape(name), self.text):
            before = self.text[max(0, match.start() - 120) : match.start()]
            if re.match(r"[\w-]", self.text[match.end() : match.end() + 1]) or re.search(r"[\w-]\Z", before):
                continue
            above = re.search(r"([\w.@+-]+)/\Z", before)
            if above is None or above[1] in (".", parent) or not parent:
                return True
        return False

    def _knows_part(self, part: str) -> bool:
        return part in GENERIC_PARTS or part.lower() in self.repository or self._shows(part)

    def _shows(self, path: str) -> bool:
        return find_bounded(self.text, path, "_-") >= 0


def squash(text: str) -> str:
    """Lower case without hyphens and underscores, so that all spellings of a name are equal."""
    return text.lower().replace("_", "").replace("-", "")


def name_parts(name: str) -> list[str]:
    """Split a name at underscores, hyphens and case changes, lower case."""
    spaced = re.sub(r"([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])", r"\1\3 \2", name)
    return [part.lower() for part in re.split(r"[\s_.-]+", spaced) if part]


def normal_path(path: str) -> str:
    """Remove `./`, a leading slash, `~/` and a closing slash."""
    return re.sub(r"^(?:~|\.{1,2})?/+|^(?:\.{1,2}/)+", "", path).rstrip("/").removeprefix("./")


def is_same_path(one: str, other: str) -> bool:
    """Whether one path is the other or its end, part by part."""
    short, long = sorted((one, other), key=len)
    return long == short or long.endswith("/" + short)


def is_generic_path(path: str) -> bool:
    """Whether every part of a path is one that any repository may have."""
    *folders, name = path.split("/")
    ends_generic = name in GENERIC_FILES or is_placeholder(name) or (name in GENERIC_PARTS and not has_extension(name))
    return ends_generic and all(folder in GENERIC_PARTS or is_placeholder(folder) for folder in folders)


def find_bounded(text: str, piece: str, joining: str) -> int:
    """Return where `piece` occurs in `text` with neither a letter, a digit nor one of `joining` beside it, or -1.

    Plain searching with a look at the neighbours: a look-behind pattern would cost a hundred times as much.
    """
    at = text.find(piece)
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(piece) : at + len(piece) + 1]
        if not (before.isalnum() or after.isalnum() or (before and before in joining) or (after and after in joining)):
            return at
        at = text.find(piece, at + 1)
    return -1


def _respelled(name: str) -> re.Pattern[str]:
    parts = r"[_-]?".join(map(re.escape, name_parts(name)))
    return re.compile(rf"(?<![a-z0-9]){parts}(?![a-z0-9])", re.IGNORECASE)
