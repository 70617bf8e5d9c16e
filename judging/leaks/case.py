"""One answer under the leak lint, and the findings of the rules in it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from judging.leaks.history import HistoryText
from judging.leaks.numbers import Number, numbers
from judging.leaks.record import DEFINED, RecordPlace, RecordText
from judging.leaks.spelling import name_parts, squash
from judging.leaks.uses import Use
from judging.leaks.vocabulary import is_common, is_library_root, is_ordinary
from judging.messages import fenced_blocks
from judging.shell.script import split_commands, stages

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LeakedToken:
    """Something in an answer that only the record can have given away.

    kind     the rule: a key of `judging.leaks.lint.RULES`
    spans    every place in the answer, as (start, end)
    place    the record's field: patch, description, files, title or instance_id; `offset` is the character there (for
             `files` in the paths joined by new lines)
    reveals  the record's words there, if the answer's own words differ from them
    """

    token: str
    kind: str
    spans: tuple[Span, ...]
    place: str
    offset: int
    reveals: str = ""


@dataclass(frozen=True, slots=True)
class LeakFinding:
    """A rule's finding: its words in the answer, and their place in the record."""

    kind: str
    span: Span
    place: RecordPlace
    reveals: str = ""


class LeakCase:
    """An answer with its history and record. Rules read it and change nothing."""

    def __init__(self, answer: str, history: HistoryText, record: RecordText) -> None:
        self.answer = answer
        self.history = history
        self.record = record

    def part(self, text: str) -> "LeakCase":
        """Return a case about another text, such as one that the answer encodes."""
        return LeakCase(text, self.history, self.record)

    @cached_property
    def code(self) -> tuple[Span, ...]:
        """The spans of the answer's fenced blocks and tool calls."""
        calls = (match.span() for match in _CALL.finditer(self.answer))
        return (*((block.start, block.end) for _, block in fenced_blocks(self.answer)), *calls)

    @cached_property
    def numbers(self) -> tuple[Number, ...]:
        """The answer's numbers in every spelling."""
        return tuple(numbers(self.answer))

    def in_code(self, span: Span) -> bool:
        return any(start <= span[0] and span[1] <= end for start, end in self.code)

    @cached_property
    def scripts(self) -> tuple[tuple[str, int], ...]:
        """The text of each block or call, with its offset. An answer without one is a script as a whole."""
        spans = self.code or ((0, len(self.answer)),)
        return tuple((self.answer[start:end], start) for span in spans for start, end in self._parameters(span))

    def _parameters(self, span: Span) -> Iterator[Span]:
        """Yield the parameters of a tool call in tags; a block or another call is a script as a whole, as is a call
        with lines of the file that another parameter names."""
        found = [match.span(1) for match in _PARAMETER.finditer(self.answer, *span)]
        has_lines = any(_LINES.fullmatch(self.answer, *each) for each in found)
        yield from [span] if has_lines or not found else found

    @cached_property
    def programs(self) -> tuple[tuple[list[str], Span], ...]:
        """Each program that the answer starts, also in `bash -c "…"` and `$( )`: its name, its arguments, its span."""
        return tuple(program for script, offset in self.scripts for program in _programs(script, offset, 0))

    def is_secret(self, name: str) -> bool:
        """Whether the history, convention or a library in use does not explain a name of the record."""
        if is_ordinary(name) or self.history.knows(name) or self.is_library_name(name) or self.by_convention(name):
            return False
        return "." not in name or not self.history.knows_path(name)

    def is_library_name(self, name: str) -> bool:
        """Whether a name belongs to a library: one that the history or everyone knows, or one that the patch uses."""
        library = self.record.library_names.get(name)
        if library is not None:
            return is_library_root(library.root) or self.history.knows(library.root)
        return self.record.use_of(name) == Use.FOREIGN

    def by_convention(self, name: str) -> bool:
        """Whether a name of the record's tests is what everyone would call the test of something in the history.

        `test_client.py`, `client_test.go`, `client.spec.ts`, `TestClient` and `test_connect` follow from `client` or
        `connect`. `parse_spec` of a module that is no test does not follow from `parse`.
        """
        name = name.rsplit("/", 1)[-1]
        tested = _TEST_NAME.fullmatch(name)
        if tested is None or name not in self.record.test_names:
            return False
        subject = next(group for group in tested.groups() if group)
        return len(subject) >= 3 and self.history.shows_name(subject)

    def coins(self, name: str) -> bool:
        """Whether the answer's code defines a name that anyone may pick: at most three words, in the history or common.

        Two people who write the same code call it `MAX_DELAY`. Who only uses or looks for that name knows of it. The
        words of a type, and of a file that the answer writes, must be in the history.
        """
        stem = name.rsplit("/", 1)[-1].split(".")[0]
        parts = name_parts(stem)
        is_own = self.defines(stem)
        if len(parts) > _MOST_PICKED or not (is_own or f" {squash(stem)} " in self._written):
            return False
        is_type = stem[:1].isupper() and not stem.isupper() and f" {squash(stem)} " in self._types
        may_be_common = is_own and not is_type
        return all(
            self.history.knows_part(part)
            or (len(part) >= _LONG_PART and self.history.knows_word(part))  # `samesite` of `SameSite`
            or (may_be_common and (len(part) < 3 or is_common(part, _PICKED)))
            for part in parts
        )

    def defines(self, name: str) -> bool:
        """Whether the answer's code defines a name, or a longer one with it: a test that `-k zero_step` selects."""
        return squash(name) in self._defined

    @cached_property
    def _defined(self) -> str:
        return self._squashed_in_code(DEFINED, _ASSIGNED)

    @cached_property
    def _types(self) -> str:
        return self._squashed_in_code(_TYPE, _ASSIGNED)

    @cached_property
    def _written(self) -> str:
        return self._squashed_in_code(_WRITTEN)

    def _squashed_in_code(self, *patterns: re.Pattern[str]) -> str:
        text = self.answer.replace("\\n", " \n")  # in a call of JSON, lines end with an escape
        found = (match for pattern in patterns for match in pattern.finditer(text))
        names = (squash(match[1]) for match in found if not self.code or self.in_code(match.span()))
        return " ".join(("", *names, ""))

    def secrets(self) -> Iterator[tuple[str, RecordPlace]]:
        """Yield the record's names that are secret; asks the history about each, so only after a cheaper test."""
        return ((name, place) for name, place in self.record.names.items() if self.is_secret(name))

    def unknown_parts(self, name: str) -> list[str]:
        """Return the words of a name that the history does not have."""
        return [part for part in name_parts(name) if not self.history.knows_part(part)]


def _programs(script: str, offset: int, depth: int) -> Iterator[tuple[list[str], Span]]:
    at = 0
    for command in split_commands(script):
        at = max(at, script.find(command.text, at))
        span = offset + at, offset + at + len(command.text)
        for stage in stages(command.words):
            for is_between, group in groupby(stage, _BETWEEN.__contains__):
                if not is_between and (program := _program(list(group))):
                    yield program, span
        inner = [word for word in command.words if _NESTED.search(word)] if depth < _DEEPEST else []
        for word in inner:
            for words, _ in _programs(_UNWRAPPED.sub(" ", word), 0, depth + 1):
                yield words, span


def _program(words: list[str]) -> list[str]:
    """Return a program and its arguments without the words before it: variables, `timeout 9`, `if`, `python -m`."""
    while words and _LEADING.fullmatch(words[0]):
        words.pop(0)
    if len(words) > 2 and re.fullmatch(r"(?:.*/)?python[\d.]*", words[0]) and words[1] == "-m":
        del words[:2]
    return [words[0].rsplit("/", 1)[-1], *words[1:]] if words else []


_BETWEEN = frozenset({";", "&", "&&", "||", "\n", "(", ")"})
_LEADING = re.compile(
    r"\w+=.*|-\S*|\d[\d.]*[smhd]?|if|then|else|elif|while|until|do|!|\{|time|env|command|exec|nohup|timeout|nice|stdbuf|sudo",
    re.DOTALL,
)
# A script within a script: `"git fetch && …"`, `$(git fetch)`, `<(curl …)`.
_NESTED = re.compile(r"\w\s+\S|[$<>]\(")
_UNWRAPPED = re.compile(r"^[$<>]\(|\)$")
_DEEPEST = 2
_PARAMETER = re.compile(r"<parameter=\w{1,40}>([^<]*(?:<(?!/?parameter)[^<]*)*)</parameter>")
_LINES = re.compile(r"\s*\[?\s*\d{1,7}(?:\s*[,-]\s*\d{1,7})?\s*\]?\s*")
_CALL = re.compile(r"(?m)^\[tool call[^\]\n]*\][^\n]*|<function=[^>\n]{1,60}>(?s:.*?)(?:</function>|\Z)")
# Names are made of so many of the most common words; longer names are not picked twice.
_PICKED, _MOST_PICKED = 2000, 3
_LONG_PART = 6
_ASSIGNED = re.compile(
    r"(?m)(?:^|'\d*[aci]\\?)[ +\t]*(?:self\.|this\.|@|#define )?([A-Za-z_]\w{2,100})(?::[^=\n]{1,60})?\s*=(?![=~])"
)
_TYPE = re.compile(r"(?<![\w-])(?:class|struct|enum|interface|trait|type|record|module)\s+([A-Z]\w{2,100})")
_WRITTEN = re.compile(r"(?:(?<!<)>\s?|create</parameter>\s*<parameter=path>)(?:[\w.-]{0,80}/){0,20}([\w-]{3,100})\.\w")
_TEST_NAME = re.compile(
    r"tests?_(\w+?)(?:\.\w+)?|(\w+?)_(?:tests?|spec)(?:\.\w+)?|([\w-]+?)\.(?:tests?|spec)\.\w+|Tests?([A-Z]\w*?)(?:\.\w+)?"
    r"|([A-Z]\w*?)(?:Tests?|Spec|TestCase)(?:\.\w+)?"
)
