"""Whether a pull-request record belongs to the trajectory that it is kept for."""

import re
from collections.abc import Sequence

from judging.leaks.history import HistoryText
from judging.leaks.record import PullRequestRecord, RecordText
from judging.leaks.spelling import find_bounded, name_parts
from judging.leaks.vocabulary import GENERIC_FILES, GENERIC_PARTS, is_common, is_ordinary, is_placeholder


def doubt_about(record: PullRequestRecord, *, repo: str, trajectory_repo: str, shown: Sequence[str]) -> str:
    """Return why a record may belong to another task, or nothing.

    `repo` is the repository that the record names, `trajectory_repo` that of the trajectory, each empty if unknown.
    `shown` are all texts of the trajectory. A record without a patch and files has nothing to compare.
    """
    if repo and trajectory_repo and not _same_repository(repo, trajectory_repo):
        return f"The record names the repository {repo}, but the turns are of {trajectory_repo}."
    text = RecordText(record)
    if not text.paths and not text.names:
        return ""
    history = HistoryText("\n".join(shown), ())
    if any(_shows_path(history, path) for path in text.paths) or _shows_names(history, text):
        return ""
    files = ", ".join(text.paths[:2]) or "no file"
    return f"The turns show no file, directory or identifier of its patch ({files})."


def _same_repository(one: str, other: str) -> bool:
    """Whether two names are of one repository. A name without its owner is compared by itself."""
    first, second = (re.sub(r"\.git$", "", name.strip().lower()).rstrip("/").split("/")[-2:] for name in (one, other))
    return first[-1] == second[-1] and (len(first) == 1 or len(second) == 1 or first == second)


def _shows_path(history: HistoryText, path: str) -> bool:
    *folders, name = path.split("/")
    stem = name.split(".")[0]
    if find_bounded(history.text, path, "_-") >= 0:
        return True
    if name not in GENERIC_FILES and not is_placeholder(name) and find_bounded(history.text, name, "_-") >= 0:
        return True
    dotted = [part for part in (*folders, stem) if not _is_everywhere(part)]
    return any(find_bounded(history.text, part, "_-") >= 0 for part in dotted)


def _is_everywhere(part: str) -> bool:
    """Whether a part of a path says nothing about one repository."""
    return len(part) < 3 or part in GENERIC_PARTS or is_placeholder(part) or is_ordinary(part) or is_common(part)


def _shows_names(history: HistoryText, text: RecordText) -> bool:
    """Whether the trajectory has a name of the patch. Names that many programs have count together: two of plain names
    (`load(`, `Env`), three that are made of common words."""
    shown = [name for name, place in text.names.items() if place.name == "patch" and history.knows(name)]
    if len(shown) >= 3 or any(not all(map(is_common, name_parts(name))) for name in shown):
        return True
    lines = [
        line for line in text.texts["patch"].splitlines() if not line.startswith(("---", "+++", "diff ", "index "))
    ]
    plain = {match[0] for match in _PLAIN_NAME.finditer("\n".join(lines)) if not is_ordinary(match[0].rstrip("("))}
    return sum(find_bounded(history.text, name.rstrip("("), "_") >= 0 and name in history.text for name in plain) >= 2


_PLAIN_NAME = re.compile(r"(?<=\.)[A-Z][a-z]\w+|\b[a-z]\w{3,}\((?!\))")
