"""Rewordings of the description, sentences that share several words with it that the history does not have; and the
title where an agent names its own work: a commit message, a stash, a note, a branch."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from judging.leaks.case import LeakCase, LeakFinding
from judging.leaks.record import RecordPlace, RecordText
from judging.leaks.tokens import is_code_like
from judging.leaks.vocabulary import STANDARDS, VERY_COMMON, is_common, is_ordinary, stem
from judging.shell.words import word_set

REWORDING = "rewording"
_SENTENCE = re.compile(r"[^.!?;\n]+(?:[.!?;](?=\w)[^.!?;\n]+)*")
_WORD = re.compile(r"[A-Za-z]{3,}")
# Names are no wording: the rules for names read them.
_QUOTED_CODE = re.compile(r"`[^`\n]*`")
_HYPHENED = re.compile(r"(?<![\w-])[A-Za-z]{1,40}(?:-[A-Za-z]{1,40}){1,8}(?![\w-])")
_COMMENT = re.compile(r"(?m)^\+.*?(?:#|//|\"\"\"|/\*)\s*([A-Za-z][^\n]{20,300})$")
_ENOUGH, _FEWEST = 2.0, 2
# Who guesses at a cause, or asks for it, often finds the right words.
_ENOUGH_IN_A_GUESS = 2.5
_STANDARD = re.compile(rf"\b(?:{STANDARDS}|specification)\b")
_GUESS = re.compile(
    r"\b(?:perhaps|maybe|probably|possibly|likely|might|could|suspect|suppose|presumably|seems?|appears?|wonder"
    r"|I\s+(?:think|guess))\b",
    re.IGNORECASE,
)
_RARE, _UNCOMMON, _PLAIN = 1.0, 0.75, 0.5


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the record: its telling stems with their weights, its words, and its place."""

    stems: dict[str, float]
    text: str
    place: RecordPlace


def find(case: LeakCase) -> Iterator[LeakFinding]:
    """Yield sentences of the answer's prose that share enough rare words with one sentence of the record."""
    sentences = _sentences(case.record)
    if not sentences:
        return
    for match in _SENTENCE.finditer(case.answer):
        if case.in_code(match.span()):
            continue
        prose = _HYPHENED.sub(lambda name: "" if is_ordinary(name[0]) else name[0], _QUOTED_CODE.sub("", match[0]))
        stems = {stem(word.lower()) for word in _WORD.findall(prose)}
        is_guess = case.answer.startswith("?", match.end()) or _GUESS.search(match[0])
        enough = _ENOUGH_IN_A_GUESS if is_guess else _ENOUGH
        for sentence in sentences:
            shared = stems & sentence.stems.keys()
            if len(shared) < _FEWEST or sum(sentence.stems[s] for s in shared) < enough:
                continue
            unknown = [s for s in shared if s not in case.history.stems]
            if len(unknown) >= _FEWEST and sum(sentence.stems[s] for s in unknown) >= enough:
                lead = len(match[0]) - len(match[0].lstrip())
                yield LeakFinding(REWORDING, (match.start() + lead, match.end()), sentence.place, sentence.text)
                break


@lru_cache(maxsize=64)
def _sentences(record: RecordText) -> tuple[Sentence, ...]:
    found = []
    for field in ("description", "title"):
        text = _SENTENCE.sub(
            lambda match: " " * len(match[0]) if _STANDARD.search(match[0]) else match[0], record.texts[field]
        )
        sentences = list(_SENTENCE.finditer(text))
        # A rewording may join two sentences.
        for one, other in zip(sentences, [*sentences[1:], *sentences[-1:]], strict=True):
            found.append(_sentence(text[one.start() : other.end()], RecordPlace(field, one.start())))
    found += [_sentence(m[1], RecordPlace("patch", m.start(1))) for m in _COMMENT.finditer(record.texts["patch"])]
    return tuple(sentence for sentence in found if len(sentence.stems) >= _FEWEST)


def _sentence(text: str, place: RecordPlace) -> Sentence:
    weights = {}
    for word in _WORD.findall(text):
        if is_code_like(word) and is_ordinary(word):
            continue  # a library's name is no wording
        word = word.lower()
        if not is_common(word, VERY_COMMON // 3):
            weights[stem(word)] = _PLAIN if is_common(word, VERY_COMMON) else _UNCOMMON if is_common(word) else _RARE
    return Sentence(weights, text.strip()[:200], place)


TITLE = "title"
_NAMING = word_set("commit stash branch switch checkout worktree tag notes merge pr mr describe new amend bookmark")
_TITLE_WORD = re.compile(r"[A-Za-z]{2,}|\d+")
# Words that a title says or leaves out without being another title.
_FILLERS = word_set(
    "a an the of in on to for with and or by from its their own when while that is are be not no as at if"
)
_ENOUGH_IN_ORDER, _SHARED = 4, 0.6


def find_titles(case: LeakCase) -> Iterator[LeakFinding]:
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
    words = _TITLE_WORD.findall(re.sub(r"(?<=[a-z])(?=[A-Z])|['’]s\b|_", " ", text).lower())
    return [stem(word) for word in words if word not in _FILLERS]


def _without_option(word: str) -> str:
    return re.sub(r"^(?:--?\w[\w-]*=|-m)", "", word)
