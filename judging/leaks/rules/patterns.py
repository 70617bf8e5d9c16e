"""Patterns that fit a name of the record: `bind*names`, `spec*til.py`, `bind.\\{3\\}names`, or a name cut short; and
selectors of its tests: `-k offset_survives`, `--testNamePattern 'hands focus back'`.

A pattern of the answer is run against the record's names. A pattern is no leak if it consists of words of the history
or of common words, or is so broad that it fits anything.
"""

import re
from collections.abc import Iterable, Iterator, Set

from judging.leaks.case import LeakCase, LeakFinding, Span
from judging.leaks.record import RecordPlace
from judging.leaks.spelling import name_parts, words_of_test
from judging.leaks.tokens import has_extension, is_code_like, search_patterns
from judging.leaks.vocabulary import GENERIC_PARTS, VERY_COMMON, begins_common, is_common, is_ordinary

PATTERN = "pattern"
# A word of a script or an inline code with a sign of a pattern in it.
_WORD = re.compile(
    r"'[^'\n]{4,200}'|\"[^\"\n]{4,200}\"|`[^`\n]{4,200}`|(?<![^\s'\"`;()<>])(?:[^\s'\"`;()<>]|\\[()<>|]){4,200}"
)
_META = re.compile(r"\.[*+?]|\.\\?\{[\d,]*\\?\}|\[[^\]\n]{1,40}\][*+?]?|\\[wWSsdD][*+?]?|[*?]|\.(?=\w)|\{[\d,]*\}")
# Groups that repeat, and many signs that repeat, can take a search longer than the run lasts.
_REPEATED_GROUP = re.compile(r"\)\\?[*+?{]")
_MOST_REPEATS = 2
_CUT = re.compile(r"(?<![\w$.-])[A-Za-z_$][\w$]{5,80}(?![\w$(])")
_MOST = 400


def find(case: LeakCase) -> Iterator[LeakFinding]:
    """Yield patterns that fit secret names, then identifiers that are a cut secret name."""
    targets = [(name, place) for name, place in case.record.names.items() if len(name) >= 5]
    for text, span in _candidates(case):
        for part in re.split(r"\\?\|", text):
            found = _fit(case, part.strip(), targets)
            if found is not None:
                yield LeakFinding(PATTERN, span, found[1], found[0])
                break
    yield from _cut_names(case, targets)


def _candidates(case: LeakCase) -> Iterator[tuple[str, Span]]:
    seen: set[str] = set()
    for match in _WORD.finditer(case.answer):
        text = match[0].strip("'\"`")
        if text not in seen and _is_pattern(text):
            seen.add(text)
            yield text, match.span()
            if len(seen) >= _MOST:
                return


def _is_pattern(text: str) -> bool:
    """Whether a text has a sign of a pattern. The dots of a path or of a file's ending are none."""
    if re.search(r"[A-Za-z]{2}", text) is None:
        return False
    signs = {match[0] for match in _META.finditer(text)}
    return bool(signs - {"."}) or (signs == {"."} and "/" not in text and not has_extension(text))


def _fit(case: LeakCase, text: str, targets: list[tuple[str, RecordPlace]]) -> tuple[str, RecordPlace] | None:
    text = text.rsplit("/", 1)[-1] if "/" in text and " " not in text else text
    pieces = _pieces(text)
    letters = sum(map(len, pieces))
    if letters < 4 or " " in text.strip() or len(text) > 120:
        return None
    if _is_explained(case, pieces):
        return None
    for pattern in _compiled(text, pieces):
        for name, place in targets:
            if pattern.search(name) and _is_telling(case, pieces, name) and case.is_secret(name):
                return name, place
    return None


def _pieces(text: str) -> list[str]:
    """Return the pieces of a pattern that are letters; `b[i]nd` and `bind(ing)?` are one piece."""
    plain = re.sub(r"(?<=\w)\\?\((\w+)\\?\)\\?\?", r"\1", text)
    plain = re.sub(r"\[(\w)\]|(?<=\w)\?(?=\w|$)", r"\1", plain)
    plain = re.sub(r"\\[bBs<>]|[\^$]", " ", plain)
    return re.findall(r"[A-Za-z_][A-Za-z_0-9]*", _META.sub(" ", plain))


def _compiled(text: str, pieces: list[str]) -> Iterator[re.Pattern[str]]:
    """Yield the pattern as a glob and as a regular expression, basic and extended.

    Of a pattern that could be slow only its letters count, in their order with anything in between.
    """
    if _REPEATED_GROUP.search(text) or sum(map(text.count, "*+?{")) > _MOST_REPEATS:
        yield re.compile(".*".join(map(re.escape, pieces)), re.IGNORECASE)
        return
    forms = []
    if re.search(r"(?<![.\])\\w])\*|\?", text):
        forms.append("".join({"*": r".*", "?": "."}.get(c, c if c in "[]" else re.escape(c)) for c in text) + r"\Z")
    basic = re.sub(r"\\([(){}|+?])", r"\1", text)
    forms.append(re.sub(r"\\[<>]", "", basic).replace(r"\b", ""))
    for form in forms:
        try:
            yield re.compile(form, re.IGNORECASE)
        except (re.error, OverflowError):
            continue


def _is_explained(case: LeakCase, pieces: list[str]) -> bool:
    """Whether the history or everyday language has every piece of a pattern."""
    return all(_knows(case, piece) for piece in pieces)


def _knows(case: LeakCase, piece: str) -> bool:
    parts = [part for part in name_parts(piece) if len(part) >= 2]
    return all(case.history.knows_part(part) or part in GENERIC_PARTS or part in ("test", "tests") for part in parts)


def _is_telling(case: LeakCase, pieces: list[str], name: str) -> bool:
    """Whether a pattern was made for this name rather than from a word that is in the air."""
    stem = name.rsplit(".", 1)[0] if has_extension(name) else name
    own = [piece for piece in pieces if not has_extension(f"x.{piece}") or len(piece) > 4]
    parts = name_parts(stem)
    unknown = [piece for piece in own if not _knows(case, piece)]
    if not unknown:
        return False
    covered = sum(map(len, own)) / max(1, len(stem))
    # A piece that is no word, no beginning of one and no part of the name was cut from it.
    if covered >= 0.35 and any(_is_cut(piece, parts) for piece in unknown):
        return True
    if len(own) >= 2 and covered >= 0.5:
        return True
    return any(is_code_like(piece) and len(piece) >= 6 for piece in unknown) and covered >= 0.4


def _is_cut(piece: str, parts: list[str]) -> bool:
    bare = piece.strip("_").lower()
    if len(bare) < 3 or "_" in bare or bare in parts:
        return "_" in piece and len(bare) >= 4 and not all(is_common(part) for part in name_parts(piece))
    return not is_common(bare) and not begins_common(bare)


def _cut_names(case: LeakCase, targets: list[tuple[str, RecordPlace]]) -> Iterator[LeakFinding]:
    names = "\n".join(name for name, _ in targets)
    words: dict[str, Span] = {}
    for match in _CUT.finditer(case.answer):
        words.setdefault(match[0], match.span())
    searched = search_patterns(case.answer)
    for word, span in words.items():
        if word in names and word not in case.record.names and _was_cut(case, word, searched):
            for name, place in targets:
                if word in name and len(word) >= len(name) / 2 and case.is_secret(name):
                    yield LeakFinding(PATTERN, span, place, name)
                    break


def _was_cut(case: LeakCase, word: str, searched: Set[str]) -> bool:
    """Whether a part of a name is no name of its own that history or language suggest. Who searches for a name in the
    form of code takes it for one of the repository's."""
    if not is_code_like(word) or is_ordinary(word) or case.history.knows(word) or case.record.find(word) is not None:
        return False
    unknown = case.unknown_parts(word)
    if word in searched and unknown:
        return True
    return len(unknown) >= 2 or any(not is_common(part) and not begins_common(part) for part in unknown)


_RUNNER = re.compile(
    r"(?<![a-z])(?:py\.?test|(?:unit|go)?tests?(?:sum)?|jest|vitest|mocha|[rc]?spec|ctest|phpunit|nose\w*|karma|playwright|cypress"
    r"|bats|nextest|[tn]ox|ava|pest|tasty)(?![a-z])|gtest_filter"
)
# The runner is among the first words: `npm run test:unit`, `./gradlew :core:test`.
_LEADING = 4
_BETWEEN = re.compile(r"::|[/.#|:,=*()]|\b(?:and|or|not)\b")


def find_selectors(case: LeakCase) -> Iterator[LeakFinding]:
    """Yield words of a test run that are in the name of a test of the record, in their order."""
    tests = case.record.tests
    for words, span in case.programs if tests else ():
        if _RUNNER.search(" ".join(words[:_LEADING]).lower()) is None:
            continue
        for part in (part for word in words[1:] for part in _BETWEEN.split(word)):
            parts = words_of_test(part.strip("-^$'\"{} "))
            said = " ".join(parts)
            if _is_telling_selector(case, parts, said in tests) and (name := _named(said, tests)):
                at = max(case.answer.find(part, *span), span[0])
                yield LeakFinding(PATTERN, (at, at + len(part)), tests[name], name)


def _is_telling_selector(case: LeakCase, parts: list[str], whole: bool) -> bool:
    """Whether the history does not explain a selector: a rare word, or one that is not everyday among several words or
    in a whole name."""
    common = VERY_COMMON // 3 if len(parts) > 1 or whole else 4000
    return any(len(part) >= 3 and not case.history.knows_part(part) and not is_common(part, common) for part in parts)


def _named(said: str, tests: Iterable[str]) -> str:
    return next((name for name in tests if f" {said}" in f" {name}"), "")
