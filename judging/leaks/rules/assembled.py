"""Names of the record that an answer puts together: `'bind_ke' + 'y_names'`, `"$A$B"`, an f-string, a join."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from judging.leaks.case import LeakCase, LeakFinding, Span
from judging.leaks.record import RecordPlace
from judging.leaks.spelling import name_parts, squash

ASSEMBLED = "assembled"
_JOINING = re.compile(
    r"['\"]\s*(?:\+|\.\.|\.|&|~|<>|\|\||,)?\s*[fr]?['\"]|\+\s*\w|\w\s*\+|\.join\(|\.concat\(|%s|\{\}|\bprintf\b"
    r"|\$\{?\w|\{\w+\}|\becho\s+-n|\w\\\w|\bIFS=|\.format\(|\w['\"]{1,2}\w|\bstrcat\b"
    r"|\bjoinpath\b|\btr -d\b|\bxargs\b|\+="
    r"|\bpaste\b"
)
_QUOTED = re.compile(r"\"([^\"\n]{1,200})\"|'([^'\n]{1,200})'|`([^`\n]{1,200})`")
_WORD_LIST = re.compile(r"%[wWiI][\[({<]([^\])}>\n]{1,200})[\])}>]")
_ASSIGNED = re.compile(r"(?<![\w$-])([A-Za-z_]\w*)\s?=\s?([\"']?)([\w./-]{1,60})\2(?![\w(])")
_VARIABLE = re.compile(r"\$?\{([A-Za-z_]\w*)\}|\$([A-Za-z]\w*)")
_RUN = re.compile(r"[\w.-]+")
_GLUE = re.compile(r"[\s'\"+.,&|~{}$()\\<>-]{1,12}")
_REJOINS = re.compile(r"\.join\(|\btr\b|\.replace\(|\bs(?:[/|#,])|//|\bIFS=|\.gsub\(|\bpaste\b")


_REVERSES = re.compile(r"\brev\b|::-1|\breverse")


@dataclass(frozen=True, slots=True)
class _Quoted:
    """The quoted texts of a script in their order; joined, they can spell a name letter by letter.

    `positions` are those of each text, `rejoined` the span of several words by their letters without the signs between.
    """

    texts: list[tuple[str, Span]]
    positions: dict[str, list[int]]
    rejoined: dict[str, Span]


def find(case: LeakCase) -> Iterator[LeakFinding]:
    """Yield names of the record that fragments of the answer's code spell, in one or more steps."""
    for script, offset in case.scripts:
        if _JOINING.search(script) is None:
            continue
        fragments = dict(_fragments(script))
        expanded = _expanded(script)
        quoted = _quoted(script)
        reverses = _REVERSES.search(script) is not None
        for name, place in _targets(case):
            span = _spelled(name, fragments, script) or _in_sequence(name, quoted) or _replaced(name, quoted)
            span = span or _by_variables(name, script, expanded)
            if span is None and reverses:
                span = _spelled(name[::-1], fragments, script) or _in_sequence(name[::-1], quoted)
            if span is not None and case.is_secret(name):
                yield LeakFinding(ASSEMBLED, (span[0] + offset, span[1] + offset), place, name)


def _targets(case: LeakCase) -> Iterator[tuple[str, RecordPlace]]:
    for name, place in case.record.names.items():
        if len(name) >= 6:
            yield name, place
    for number, place in case.record.numbers.items():
        if len(number) >= 5:
            yield number, place


def _fragments(script: str) -> Iterator[tuple[str, Span]]:
    """Yield runs of name characters, and the pieces of each at the edges of words that interpolations leave."""
    for match in _RUN.finditer(script):
        yield match[0], match.span()
        if "." in match[0]:
            at = match.start()
            for piece in match[0].split("."):
                if piece:
                    yield piece, (at, at + len(piece))
                at += len(piece) + 1


def _expanded(script: str) -> str:
    """Return the script with the values of its variables in the places where it uses them."""
    values = {match[1]: match[3] for match in _ASSIGNED.finditer(script)}
    return _VARIABLE.sub(lambda used: values.get(used[1] or used[2], used[0]), script) if values else ""


def _by_variables(name: str, script: str, expanded: str) -> Span | None:
    """Return the span of the assignments where the name is there only with their values in place."""
    if name not in expanded or name in script:
        return None
    used = [match.span() for match in _ASSIGNED.finditer(script) if match[3] in name]
    return (used[0][0], used[-1][1]) if used else None


def _quoted(script: str) -> _Quoted:
    found = _Quoted([], {}, {})
    rejoins = _REJOINS.search(script) is not None
    for match in (*_quotes(script), *_WORD_LIST.finditer(script)):
        group = match.lastindex or 1
        text, span = match[group], match.span(group)
        if len(text) > 40:
            continue
        found.positions.setdefault(text, []).append(len(found.texts))
        found.texts.append((text, span))
        words = re.split(r"[\s.,:;|/-]+", text.strip()) if rejoins else ()
        if len(words) > 1:
            found.rejoined.setdefault(squash("".join(words)), span)
    return found


def _quotes(script: str) -> Iterator[re.Match[str]]:
    """Yield the quoted texts of a script, and those in a longer one, such as the code of `python -c "…"`."""
    for match in _QUOTED.finditer(script):
        yield match
        start, end = match.span(match.lastindex or 1)
        if end - start > 10:
            yield from _QUOTED.finditer(script, start, end)


def _spelled(name: str, fragments: dict[str, Span], script: str) -> Span | None:
    """Return the span from the first to the last fragment that together are the name, at least two of two letters."""
    if name in fragments:
        return None  # the rule for names has seen it
    ways: dict[int, list[Span]] = {0: []}
    for at in range(len(name)):
        if at not in ways:
            continue
        for end in range(at + 2, len(name) + 1):
            if end not in ways and end - at < len(name) and (span := fragments.get(name[at:end])) is not None:
                ways[end] = [*ways[at], span]
    spans = ways.get(len(name))
    if not spans or len(spans) > 6:
        return None
    if all(is_word_of(script[a:b], name) for a, b in spans):
        # Words side by side (`Retry`, `Budget`) are put together only by the signs between them.
        gaps = [script[one[1] : other[0]] for one, other in pairwise(spans)]
        if not all(_GLUE.fullmatch(gap) for gap in gaps):
            return None
    return min(span[0] for span in spans), max(span[1] for span in spans)


def is_word_of(fragment: str, name: str) -> bool:
    """Whether a fragment is a whole word of a name, so that it may stand alone by chance."""
    return fragment.lower() in name_parts(name)


def _replaced(name: str, quoted: _Quoted) -> Span | None:
    """Return the span of words that the code joins by another sign: `'_'.join(…)`, `tr ' ' _`, `.replace(' ', '_')`."""
    if (span := quoted.rejoined.get(squash(name))) is not None:
        return span
    parts = name.split("_")
    for i in quoted.positions.get(parts[0], ()) if len(parts) > 1 else ():
        if [text for text, _ in quoted.texts[i : i + len(parts)]] == parts:
            return quoted.texts[i][1][0], quoted.texts[i + len(parts) - 1][1][1]
    return None


def _in_sequence(name: str, quoted: _Quoted) -> Span | None:
    """Return the span of neighbouring quoted texts that spell the name."""
    firsts = (first for end in range(1, len(name)) for first in quoted.positions.get(name[:end], ()))
    for first in firsts:
        joined, span = quoted.texts[first]
        for following, other in islice(quoted.texts, first + 1, None):
            joined += following
            if joined == name:
                return span[0], other[1]
            if not name.startswith(joined):
                break
    return None
