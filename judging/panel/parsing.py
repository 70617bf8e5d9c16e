"""Reads a judge's reply. A reply that cannot be read is *unparsed*: missing, never a loss."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from judging.answers.read import split_thinking
from judging.panel.rubric import DIMENSIONS


@dataclass(frozen=True, slots=True)
class ParsedVerdict:
    """Every rubric name with 1 (first answer better), 2 (second) or 0 (draw), and the judge's sentence or ""."""

    dimensions: Mapping[str, int]
    reason: str


@dataclass(frozen=True, slots=True)
class Unparsed:
    """Why a reply is no verdict, in words for the report."""

    reason: str


_KEY_ALIASES = {
    **dict.fromkeys(("correctness", "correct", "correctnes"), "correctness"),
    **dict.fromkeys(("grounding", "grounded", "groundedness", "groundness"), "grounding"),
    **dict.fromkeys(("progress", "progression"), "progress"),
    **dict.fromkeys(("protocol", "protocolcompliance", "protocoladherence", "format", "formatting"), "protocol"),
    **dict.fromkeys(("efficiency", "efficient", "eff"), "efficiency"),
    **dict.fromkeys(("reason", "reasoning", "rationale", "explanation", "justification", "why"), "reason"),
}
_VALUE_ALIASES = {
    **dict.fromkeys(("1", "first", "answer1", "response1", "thefirst", "firstanswer", "one"), 1),
    **dict.fromkeys(("2", "second", "answer2", "response2", "thesecond", "secondanswer", "two"), 2),
    **dict.fromkeys(("0", "draw", "tie", "tied", "equal", "same", "neither", "both", "zero"), 0),
}
# Names under which models nest the flat object that was asked for, and the value of one dimension.
_NESTS = frozenset(
    {"scores", "score", "verdict", "verdicts", "dimensions", "result", "results", "judgment", "judgement", "ratings"}
)
_VALUE_NAMES = ("winner", "better", "value", "score", "verdict", "choice", "preferred")

_CANDIDATE = re.compile(r'\{\s*"')
_LONGEST_OBJECT = 32_768
# Characters and attempts spent on hostile text before giving up: both together keep 1 MB well under a second.
_CHARACTER_BUDGET = 8_000_000
_ATTEMPT_BUDGET = 20_000


def parse_verdict(raw: str, *, finish_reason: str, dimensions: Sequence[str] = DIMENSIONS) -> ParsedVerdict | Unparsed:
    """Read one reply: thinking is removed, then the last JSON object with all dimensions counts.

    Objects may be fenced, bare, amid prose, or nested under a name such as `scores`; keys and values may be spelled
    in the known other ways. A missing dimension, a value other than 0, 1 or 2, and a reply that is empty or cut off
    before its object is complete make it Unparsed.
    """
    cut = finish_reason.lower() in ("length", "max_tokens")
    text = split_thinking(raw).text
    if not text.strip():
        return Unparsed("truncated: the token limit was reached before an answer" if cut else "empty reply")
    best: dict[str, object] | None = None
    names = _names(tuple(dimensions))
    try:
        for candidate in _objects(text):
            flat = _flattened(candidate, names)
            if flat is not None and (best is None or _named(flat) >= _named(best)):
                best = flat
    except _TooMuchError:
        return Unparsed("too many unreadable braces in the reply")
    except _DuplicateKeyError as error:
        return Unparsed(f"key given twice: {error}")
    if best is None or _named(best) < len(dimensions):
        if cut:
            return Unparsed("truncated: the token limit was reached before the JSON object was complete")
        if best is None:
            return Unparsed("no JSON object with the expected keys")
        return Unparsed("missing dimension: " + ", ".join(d for d in dimensions if d not in best))
    return _verdict(best, dimensions)


def _verdict(found: Mapping[str, object], dimensions: Sequence[str]) -> ParsedVerdict | Unparsed:
    values: dict[str, int] = {}
    for dimension in dimensions:
        value = _value(found[dimension])
        if value is None:
            return Unparsed(f"value of {dimension} must be 0, 1 or 2, not {_shown(found[dimension])}")
        values[dimension] = value
    reason = found.get("reason", "")
    return ParsedVerdict(values, reason.strip() if isinstance(reason, str) else "")


def _named(found: Mapping[str, object]) -> int:
    return len(found.keys() - {"reason"})


@lru_cache(maxsize=32)
def _names(dimensions: tuple[str, ...]) -> Mapping[str, str]:
    """Return the name by its letters, and by the other spellings that are known."""
    known = {spelling: name for spelling, name in _KEY_ALIASES.items() if name == "reason" or name in dimensions}
    return {**known, **{_letters(dimension): dimension for dimension in dimensions}}


def _letters(key: str) -> str:
    return re.sub(r"[^a-z]", "", key[:60].lower())


class _TooMuchError(Exception):
    """The search for objects used up its budget."""


class _DuplicateKeyError(Exception):
    """An object names one dimension twice, so it has no single meaning."""


def _objects(text: str) -> Iterator[dict[str, object]]:
    """Yield the outermost decodable objects in order."""
    decoder = json.JSONDecoder()
    position = spent = attempts = 0
    while (candidate := _CANDIDATE.search(text, position)) is not None:
        attempts += 1
        if spent > _CHARACTER_BUDGET or attempts > _ATTEMPT_BUDGET:
            raise _TooMuchError
        start = candidate.start()
        window = text[start : start + _LONGEST_OBJECT]
        try:
            found, length = decoder.raw_decode(window)
        except json.JSONDecodeError as error:
            spent += error.pos + 1
            position = start + 1
        except (RecursionError, ValueError):
            # Nested beyond the interpreter's depth, or a number of thousands of digits.
            spent += len(window)
            position = start + 1
        else:
            spent += length
            position = start + length
            if isinstance(found, dict):
                yield found


def _flattened(found: Mapping[str, object], names: Mapping[str, str], depth: int = 0) -> dict[str, object] | None:
    """Rename an object's keys to the rubric's names; None if it has none of them."""
    flat: dict[str, object] = {}
    nested: dict[str, object] = {}
    for key, value in found.items():
        plain = _letters(key)
        name = names.get(plain)
        if name is not None:
            if name in flat and name != "reason":
                raise _DuplicateKeyError(name)
            flat[name] = value
        elif plain in _NESTS and isinstance(value, dict) and depth < 3:
            nested = _flattened(value, names, depth + 1) or nested
    flat = {**nested, **flat}
    return flat if _named(flat) else None


def _value(value: object) -> int | None:
    if isinstance(value, Mapping):
        named = [value[name] for name in _VALUE_NAMES if name in value]
        return _value(named[0]) if len(named) == 1 and not isinstance(named[0], Mapping) else None
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return int(value) if value in (0, 1, 2) else None
    if isinstance(value, str):
        return _VALUE_ALIASES.get(re.sub(r"[\s_.#-]", "", value[:40].lower()))
    return None


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)[:80]
    return text if len(text) < 80 else text[:77] + "…"
