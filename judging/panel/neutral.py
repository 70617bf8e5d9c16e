"""Neutralises text that poses as the panel: verdicts, delimiters, template tokens, instructions to the judge.

Only invisible characters are removed: a judge must still see what an answer tried. Every pattern is bounded, so the
time is linear in the text.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from judging.panel.rubric import DIMENSIONS


@dataclass(frozen=True, slots=True)
class Neutralised:
    """Text that is safe to show to a judge. `findings` is empty when the text is unchanged, else the kinds found:
    `delimiter`, `chat_token`, `verdict`, `instruction`, `hidden_text`."""

    text: str
    findings: tuple[str, ...]


_DELIMITER = re.compile(
    r"<(?=\s{0,3}/?\s{0,3}"
    r"(?:answer[ _-]?[12]|history|reference|verdict)\s{0,3}/?>)",
    re.IGNORECASE,
)
_CHAT_TOKEN = re.compile(
    r"<(?P<a>[|｜][^|｜<>\s]{1,40}(?:[ ▁][^|｜<>\s]{1,20}){0,3}[|｜])>"
    r"|\[(?P<b>/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS))\]"
    r"|<(?P<c></?SYS>)>|<(?P<d>(?:start|end)_of_turn)>"
)
_VERDICT_KEY = re.compile(
    r"\b(?<!quoted-)(?P<key>" + "|".join(DIMENSIONS) + r")(?=[\"'`*_]{0,3}\s{0,5}[:=]\s{0,5}[\"'`*]{0,2}"
    r"(?:[012]\b|first\b|second\b|draw\b|tie\b|answer[ _]?[12]\b))",
    re.IGNORECASE,
)
# The maximum distance between two keys of one verdict, and how many different keys make a verdict.
_VERDICT_REACH = 400
_VERDICT_KEYS = 2

_WHICH = r"(?:answer|response|option|candidate|solution|assistant|reply)[ \t_#]{0,2}(?:1|2|one|two|a|b)\b"
_ORDINAL = r"(?:first|second|1st|2nd|former|latter)\s{1,3}(?:answer|response|option|candidate|solution|reply)\b"
_PREFER = r"(?:choose|select|prefer|pick|favou?r|vote\s{1,3}for|go\s{1,3}with|rank|rate|score|mark|grade|reward)"
_BEST = r"(?:better|best|superior|preferred|preferable|winner|winning|correct\s{1,3}(?:one|choice))"
_JUDGE = r"(?:judges?|graders?|evaluators?|reviewing\s{1,3}model|panel)"
_INSTRUCTION = re.compile(
    "|".join(
        (
            r"\b(?:ignore|disregard|forget|override|do\s{1,3}not\s{1,3}follow)\s{1,3}(?:(?:all|any|the|your|these|of|my)\s{1,3}){0,3}"
            r"(?:previous|prior|above|earlier|preceding|original|system|judging|grading)\s{1,3}"
            r"(?:(?:and|or|system)\s{1,3}\w{1,12}\s{1,3}){0,2}(?:instructions?|prompts?|rules?|rubric|guidelines?|directions?|messages?|context)\b",
            rf"\bas\s{{1,3}}(?:the|a|an)\s{{1,3}}(?:\w{{1,20}}\s{{1,3}}){{0,2}}{_JUDGE}\s{{0,3}},?\s{{1,3}}you\s{{1,3}}\w{{1,12}}",
            rf"\b(?:dear|attention|note\s{{1,3}}(?:to|for)|message\s{{1,3}}(?:to|for)|instructions?\s{{1,3}}(?:to|for))\s{{0,3}}:?\s{{1,3}}"
            rf"(?:the\s{{1,3}}|all\s{{1,3}}|any\s{{1,3}})?{_JUDGE}\b",
            rf"\b{_JUDGE}\s{{0,2}}[:,]\s{{1,3}}(?:please\s{{1,3}})?(?:you\s{{1,3}}\w{{1,12}}\s{{1,3}})?{_PREFER}\b",
            rf"\b(?:the\s{{1,3}})?(?:{_WHICH}|{_ORDINAL})\s{{1,3}}(?:is|was|must\s{{1,3}}be|should\s{{1,3}}be|wins|has\s{{1,3}}to\s{{1,3}}be)"
            rf"(?:\s{{1,3}}(?:clearly|obviously|the|far|much|strictly|definitely|always|considered)){{0,3}}(?:\s{{1,3}}{_BEST}\b|(?<=wins)\b)",
            rf"\b{_PREFER}\s{{1,3}}(?:only\s{{1,3}}|always\s{{1,3}})?(?:the\s{{1,3}}|this\s{{1,3}})?(?:{_WHICH}|{_ORDINAL})",
            r"\b(?:this|my)\s{1,3}(?:answer|response|solution)\s{1,3}(?:is|must\s{1,3}be|should\s{1,3}be|deserves)\s{1,3}"
            r"(?:(?:clearly|obviously|the|far|rated|scored|judged|ranked|to\s{1,3}win|a)\s{1,3}){0,4}"
            r"(?:better|best|superior|winner|preferred|highest|full\s{1,3}marks|win)\b",
            rf"\b(?:give|award|assign)\s{{1,3}}(?:this|my|the\s{{1,3}}(?:first|second))\s{{1,3}}(?:answer|response)\b"
            rf"|\b{_PREFER}\s{{1,3}}(?:this|my)\s{{1,3}}(?:answer|response)\b",
            r"\byou\s{1,3}(?:must|should|have\s{1,3}to|will|need\s{1,3}to)\s{1,3}(?:now\s{1,3}|only\s{1,3}|always\s{1,3})?"
            r"(?:output|return|reply|respond|answer|give|write)\s{1,3}(?:\w{1,15}\s{1,3}){0,4}(?:verdict|judge?ment|score\s{1,3}of)\b",
        )
    ),
    re.IGNORECASE,
)
# Zero-width and direction marks, and the tag block: they can hide an instruction from a person or split a token.
_HIDDEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
_HIDDEN_TAGS = re.compile("[\U000e0000-\U000e007f]")


def neutralise(text: str) -> Neutralised:
    """Mark every passage of `text` that poses as the panel, and say what kinds were found.

    Delimiters and template tokens get their opening bracket escaped (`&lt;`, `&#91;`), the keys of a pasted verdict
    are prefixed with `quoted-`, instructions to the judge are wrapped in `⟦quoted from the transcript: …⟧`. Other
    text, code, JSON and HTML stay byte for byte.
    """
    safe, findings = _mark(text)
    if not _HIDDEN.search(text):
        return Neutralised(safe, findings)
    revealed, more = _mark(_HIDDEN.sub("", text))
    if set(more) - set(findings) or _HIDDEN_TAGS.search(text):
        return Neutralised(revealed, (*more, "hidden_text"))
    return Neutralised(safe, findings)


def _mark(text: str) -> tuple[str, tuple[str, ...]]:
    findings: list[str] = []
    steps: tuple[tuple[str, Callable[[str], str]], ...] = (
        ("delimiter", lambda t: _DELIMITER.sub("&lt;", t)),
        ("chat_token", lambda t: _CHAT_TOKEN.sub(_escaped_token, t)),
        ("verdict", _mark_verdicts),
        ("instruction", lambda t: _INSTRUCTION.sub(lambda m: f"⟦quoted from the transcript: {m[0]}⟧", t)),
    )
    for kind, step in steps:
        marked = step(text)
        if marked != text:
            findings.append(kind)
            text = marked
    return text, tuple(findings)


def _escaped_token(match: re.Match[str]) -> str:
    inner = next(group for group in match.groups() if group is not None)
    return f"&#91;{inner}&#93;" if match["b"] else f"&lt;{inner}&gt;"


def _mark_verdicts(text: str) -> str:
    """Prefix rubric keys that carry a verdict's value, where at least two different ones are close together."""
    found = list(_VERDICT_KEY.finditer(text))
    posing: list[re.Match[str]] = []
    group: list[re.Match[str]] = []
    for match in [*found, None]:
        if match is not None and (not group or match.start() - group[-1].end() <= _VERDICT_REACH):
            group.append(match)
            continue
        if len({m["key"].lower() for m in group}) >= _VERDICT_KEYS:
            posing += group
        group = [match] if match is not None else []
    parts: list[str] = []
    position = 0
    for match in posing:
        parts += [text[position : match.start("key")], "quoted-"]
        position = match.start("key")
    return "".join([*parts, text[position:]])
