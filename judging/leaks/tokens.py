"""Cuts an answer into its checkable tokens, and finds the searches that it proposes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from judging.leaks.vocabulary import GENERIC_FILES
from judging.messages import bash_blocks
from judging.shell.script import split_commands, stages
from judging.shell.words import word_set

PATH, IDENTIFIER, LITERAL, TEXT = "path", "identifier", "literal", "text"

_EXTENSIONS = (
    "py|pyi|pyx|ipynb|js|jsx|mjs|cjs|ts|tsx|vue|svelte|go|rs|java|kt|kts|scala|groovy|c|h|cc|cpp|cxx|hpp|hh|cs|fs|rb|rake|"
    "php|pl|pm|swift|m|mm|lua|r|jl|ex|exs|erl|hs|clj|dart|zig|nim|sh|bash|zsh|ps1|bat|sql|html|htm|css|scss|sass|less|"
    "json|jsonl|yaml|yml|toml|ini|cfg|conf|xml|md|rst|txt|csv|tsv|lock|gradle|proto|graphql|tf|j2|tmpl|erb|env|mk|cmake|"
    "in|feature|snap|po|svg"
)
_EXTENSION = re.compile(rf"\.(?:{_EXTENSIONS})$", re.IGNORECASE)
_TOKEN = re.compile(
    r"(?P<url>\b[a-z][a-z0-9+]{1,8}://[^\s'\"`<>)]{1,400})"
    r"|(?P<path>(?<![\w/.~-])(?:~|\.{1,2})?/?(?:[\w.@+-]{1,120}/){1,30}(?:[\w@+-][\w.@+-]{0,120})?)"
    rf"|(?P<file>(?<![\w/.-])\.?[\w@+-][\w.@+-]{{0,120}}\.(?:{_EXTENSIONS})\b(?![\w(]|\.\w|\s*\())"
    r"|(?P<flag>(?<![\w-])--[A-Za-z][\w-]{1,60})"
    r"|(?P<number>(?<![\w&])#\d{3,7}\b|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b)"
    r"|(?P<dotted>[A-Za-z_$][\w$]{0,100}(?:\.[A-Za-z_$][\w$]{0,100}){1,12}(?<!\$))"
    r"|(?P<kebab>(?<=['\"`])[A-Za-z][a-z0-9]{0,40}(?:-[A-Za-z0-9]{1,40}){1,8}(?=['\"`])"
    r"|\b[a-z][a-z0-9]{0,40}(?:-[a-z0-9]{1,40}){1,8}(?=\s{0,2}[=:]\s{0,2}[\w'\"\[]))"
    r"|(?P<word>[A-Za-z_$](?:[\w$]{0,120}\w)?)"
)
_QUOTED = re.compile(r"\"([^\"\n]{4,300})\"|(?<!\w)'([^'\n]{4,300})'(?!\w)|(?<!`)`([^`\n]{4,300})`(?!`)")
_CAMEL = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]{2,}")
_DEFINES = re.compile(
    r"\b(?:called|named|def|class|function|func|fn|struct|enum|interface|trait|type|const|let|var|module|method|hook|component)\s+$"
)
_IS_A = re.compile(
    r"`?\s+(?:class|method|function|helper|hook|component|struct|option|setting|module|constant|fixture)\b"
)
_WITHIN_SENTENCE = re.compile(r"[\w,;)]\s+$|[('\"]$")
# `s/old/new/` of sed and perl looks like a path; its parts are texts of their own.
_EDITORS = re.compile(r"\b(?:sed|perl)\b[^\n]{3,4000}")
_SUBSTITUTION = re.compile(
    r"(?<![A-Za-z_./-])s(?P<d>[/|#,@!:~%+])(?P<old>(?:\\.|(?!(?P=d))[^\\\n]){1,1000})(?P=d)"
    r"(?P<new>(?:\\.|(?!(?P=d))[^\\\n]){0,1000})(?P=d)[a-zA-Z0-9]{0,6}"
)
# A flag with its value after it: `-SNAME`, `-kNAME`. The blank keeps every offset.
_GLUED = re.compile(r"(?<![\w-])-[A-Za-z](?=([A-Za-z_$][\w$]{3,}))")
# Commands that print what matches a pattern, and the options that come before the pattern.
_SEARCHERS = word_set("grep egrep fgrep zgrep rg ag ack search_dir search_file find_file fd fdfind git")
_FIND_OPTIONS = word_set("-name -iname -path -ipath -wholename -iwholename -regex -iregex")


@dataclass(frozen=True, slots=True)
class AnswerToken:
    """One distinct checkable token: its text, kind, and every place in the answer as (start, end)."""

    text: str
    kind: str
    spans: tuple[tuple[int, int], ...]
    code_form: bool = False


def answer_tokens(answer: str) -> tuple[AnswerToken, ...]:
    """Return paths, code-like identifiers and string literals in the order of their first place.

    A plain word (`code_form` false) is a candidate only where it is written like a name: called, in back-ticks, after a
    dot, beside the word for its kind ("the Router class"), or capitalised within a sentence.
    """
    # Regex escapes such as the `\b` of `\bName\b` would stick to the name; blanks keep every offset.
    answer = re.sub(r"\\[bBnrtsSdDwW<>]", "  ", answer)
    answer = _EDITORS.sub(lambda line: _SUBSTITUTION.sub(_without_delimiters, line[0]), answer)
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    as_code: set[str] = set()
    for text, kind, start, code_form in _pieces(answer):
        span = start, start + len(text)
        spans = found.setdefault((text, kind), [])
        if span not in spans[-50:]:
            spans.append(span)
        if code_form:
            as_code.add(text)
    return tuple(AnswerToken(text, kind, tuple(spans), text in as_code) for (text, kind), spans in found.items())


def unglued(answer: str) -> str:
    """Return an answer with blanks for the letters of flags that code-like values are glued to."""
    return _GLUED.sub(lambda flag: "  " if is_code_like(flag[1]) else flag[0], answer)


def is_code_like(name: str) -> bool:
    """Whether a name can only be code: snake_case, camelCase, or letters with digits."""
    bare = name.strip("_$")
    if len(bare) < 3 or bare.isdigit():
        return False
    has_digit_inside = len(bare) >= 4 and any(c.isdigit() for c in bare) and sum(c.isalpha() for c in bare) >= 3
    return "_" in bare or bool(_CAMEL.search(bare)) or has_digit_inside


def search_patterns(answer: str) -> frozenset[str]:
    """Return the words inside the patterns of the searches that an answer proposes (grep, rg, find -name …)."""
    words: set[str] = set()
    for block in bash_blocks(answer):
        for command in split_commands(block.script):
            for stage in stages(command.words):
                for pattern in _patterns_of(stage):
                    words.update(re.findall(r"[A-Za-z_$][\w$]*", re.sub(r"\\[bBsSwWdD<>]", " ", pattern)))
    return frozenset(words)


def _pieces(answer: str) -> Iterator[tuple[str, str, int, bool]]:
    for match in _TOKEN.finditer(answer):
        text, start, group = match[0], match.start(), match.lastgroup
        if group == "path":
            yield from _path_pieces(text, start)
        elif group == "file":
            yield text, PATH, start, True
        elif group == "dotted":
            yield from _dotted_pieces(answer, text, start)
        elif group in ("flag", "kebab", "number"):
            yield text, IDENTIFIER, start, True
        elif group == "word":
            if text in GENERIC_FILES:
                yield text, PATH, start, True
            else:
                yield from _word_piece(answer, text, start)
    for word in search_patterns(answer):
        if len(word) >= 5 and not is_code_like(word):
            yield from ((word, IDENTIFIER, m.start(), False) for m in re.finditer(rf"\b{re.escape(word)}\b", answer))
    for quoted in _QUOTED.finditer(answer):
        index = quoted.lastindex or 1
        if re.search(r"[A-Za-z]{2}.*[^\w]", quoted[index]):
            yield quoted[index], LITERAL, quoted.start(index), True


def _without_delimiters(match: re.Match[str]) -> str:
    """The expression with blanks for `s`, its delimiters and its flags: every offset stays."""
    tail = len(match[0]) - len("s/") - len(match["old"]) - 1 - len(match["new"])
    return f"  {match['old']} {match['new']}{' ' * tail}"


def _path_pieces(text: str, start: int) -> Iterator[tuple[str, str, int, bool]]:
    text = text.rstrip(".")
    yield text, PATH, start, True
    # A pair of alternatives looks like a path; its parts are names of their own.
    for part in re.finditer(r"[A-Za-z_$][\w$]*", text):
        if is_code_like(part[0]):
            yield part[0], IDENTIFIER, start + part.start(), True


def _dotted_pieces(answer: str, text: str, start: int) -> Iterator[tuple[str, str, int, bool]]:
    parts = text.split(".")
    if (
        len(parts) == 2
        and len(parts[0]) > 2
        and parts[1][:1].isupper()
        and parts[1][1:].islower()
        and parts[0].islower()
    ):
        # "first sentence.Second": a missing blank, not a name.
        text = parts[0]
    else:
        yield text, IDENTIFIER, start, True
    offset = start
    for part in parts:
        yield from _word_piece(answer, part, offset)
        offset += len(part) + 1


def _word_piece(answer: str, text: str, start: int) -> Iterator[tuple[str, str, int, bool]]:
    end = start + len(text)
    if is_code_like(text):
        yield text, IDENTIFIER, start, True
    elif len(text) >= 4 and (
        answer.startswith("(", end)
        or answer[start - 1 : start] in (".", "`", ":")
        or _DEFINES.search(answer, max(0, start - 12), start)
        or _IS_A.match(answer, end)
        or (text[0].isupper() and _WITHIN_SENTENCE.search(answer, max(0, start - 3), start))
    ):
        yield text, IDENTIFIER, start, False


def _patterns_of(words: list[str]) -> Iterator[str]:
    if not words:
        return
    name = words[0].rsplit("/", 1)[-1]
    if name == "find":
        yield from (words[i + 1] for i, word in enumerate(words[:-1]) if word in _FIND_OPTIONS)
        return
    if name not in _SEARCHERS or (name == "git" and "grep" not in words):
        return
    rest = words[words.index("grep") + 1 :] if name == "git" else words[1:]
    given = [rest[i + 1] for i, word in enumerate(rest[:-1]) if word in ("-e", "--regexp")]
    yield from given or [word for word in rest if not word.startswith("-")][:1]


def has_extension(path: str) -> bool:
    """Whether the last part of a path ends in a known file extension."""
    return _EXTENSION.search(path) is not None
