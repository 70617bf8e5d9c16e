"""Selectors of tests that fit a test of the record: `-k offset_survives`, `--testNamePattern 'hands focus back'`."""

import re
from collections.abc import Iterable, Iterator

from judging.leaks.case import LeakCase, LeakFinding
from judging.leaks.rules.patterns import PATTERN
from judging.leaks.spelling import words_of_test
from judging.leaks.words import VERY_COMMON, is_common

_RUNNER = re.compile(
    r"(?<![a-z])(?:py\.?test|(?:unit|go)?tests?(?:sum)?|jest|vitest|mocha|[rc]?spec|ctest|phpunit|nose\w*|karma|playwright|cypress"
    r"|bats|nextest|[tn]ox|ava|pest|tasty)(?![a-z])|gtest_filter"
)
# The runner is among the first words: `npm run test:unit`, `./gradlew :core:test`.
_LEADING = 4
_BETWEEN = re.compile(r"::|[/.#|:,=*()]|\b(?:and|or|not)\b")


def find(case: LeakCase) -> Iterator[LeakFinding]:
    """Yield words of a test run that are in the name of a test of the record, in their order."""
    tests = case.record.tests
    for words, span in case.programs if tests else ():
        if _RUNNER.search(" ".join(words[:_LEADING]).lower()) is None:
            continue
        for part in (part for word in words[1:] for part in _BETWEEN.split(word)):
            parts = words_of_test(part.strip("-^$'\"{} "))
            said = " ".join(parts)
            if _is_telling(case, parts, said in tests) and (name := _named(said, tests)):
                at = max(case.answer.find(part, *span), span[0])
                yield LeakFinding(PATTERN, (at, at + len(part)), tests[name], name)


def _is_telling(case: LeakCase, parts: list[str], whole: bool) -> bool:
    """Whether the history does not explain a selector: a rare word, or one that is not everyday among several words or
    in a whole name."""
    common = VERY_COMMON // 3 if len(parts) > 1 or whole else 4000
    return any(len(part) >= 3 and not case.history.knows_part(part) and not is_common(part, common) for part in parts)


def _named(said: str, tests: Iterable[str]) -> str:
    return next((name for name in tests if f" {said}" in f" {name}"), "")
