"""The pull request's title where an agent names its own work: a commit message, a stash, a note, a branch."""

import re
from collections.abc import Iterator

from judging.leaks.case import LeakCase, LeakFinding
from judging.leaks.record import RecordPlace
from judging.leaks.words import VERY_COMMON, is_common, stem
from judging.shell.words import word_set

TITLE = "title"
_NAMING = word_set("commit stash branch switch checkout worktree tag notes merge pr mr describe new amend bookmark")
_WORD = re.compile(r"[A-Za-z]{2,}|\d+")
# Words that a title says or leaves out without being another title.
_FILLERS = word_set(
    "a an the of in on to for with and or by from its their own when while that is are be not no as at if"
)
_ENOUGH_IN_ORDER, _SHARED = 4, 0.6


def find(case: LeakCase) -> Iterator[LeakFinding]:
    """Yield names of own work that are the title of the record, in whole or for the most part."""
    title = _stems(case.record.texts["title"])
    if len(title) < 3:
        return
    for words, span in case.programs:
        if words[0] not in ("git", "gh", "glab", "hub", "hg", "svn", "jj") or not _NAMING & set(words[1:4]):
            continue
        if any(_is_title(case, _stems(_without_option(word)), title) for word in words[2:]):
            yield LeakFinding(TITLE, span, RecordPlace("title", 0), case.record.texts["title"])


def _is_title(case: LeakCase, said: list[str], title: list[str]) -> bool:
    if len(said) < 3:
        return False
    shared = [word for word in dict.fromkeys(said) if word in title]
    unknown = [word for word in shared if word not in case.history.stems]
    # The same words in the same order are the title, even where the history has each of them.
    if len(title) >= _ENOUGH_IN_ORDER and (_contains(said, title) or (len(said) >= 5 and _contains(title, said))):
        return " ".join(said) not in " ".join(_stems(case.history.text))
    if len(shared) < _SHARED * len(set(title)) or len(shared) < _SHARED * len(set(said)):
        return False
    return any(not is_common(word, VERY_COMMON // 3) for word in unknown)


def _contains(whole: list[str], part: list[str]) -> bool:
    return any(whole[at : at + len(part)] == part for at in range(len(whole) - len(part) + 1))


def _stems(text: str) -> list[str]:
    words = _WORD.findall(re.sub(r"(?<=[a-z])(?=[A-Z])|['’]s\b|_", " ", text).lower())
    return [stem(word) for word in words if word not in _FILLERS]


def _without_option(word: str) -> str:
    return re.sub(r"^(?:--?\w[\w-]*=|-m)", "", word)
