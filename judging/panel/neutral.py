"""Neutralises text that poses as the panel: verdicts, delimiters, template tokens, instructions to the judge.

Only invisible characters are removed, and letters that hide a passage (look-alikes, bold, full-width) are replaced by
plain ones: a judge must still see the attempt. Every pattern is bounded, so the time is linear in the text. Phrases are
a hint to people: an answer is held apart by its delimiters (`judging.sections`), and control duels find judges that
take bribes (`judging.planted_faults`).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from judging.letters import plain_letters
from judging.panel.rubric import DIMENSIONS


@dataclass(frozen=True, slots=True)
class NeutralText:
    """Text that is safe to show to a judge. `findings` is empty when the text is unchanged, else the kinds found:
    `delimiter`, `chat_token`, `verdict`, `instruction`, `comparison`, `hidden_text`."""

    text: str
    findings: tuple[str, ...]


_DELIMITER = re.compile(
    r"<(?=\s{0,3}/?\s{0,3}"
    r"(?:answer[ _-]?[12]|history|reference|verdict)(?:\s{1,3}[\w-]{1,20}\s?=[^<>]{0,80})?\s{0,3}/?>)",
    re.IGNORECASE,
)
_CHAT_TOKEN = re.compile(
    r"<\s?(?P<a>[|｜]\s?[^|｜<>\s]{1,40}(?:[ ▁][^|｜<>\s]{1,20}){0,3}\s?[|｜])\s?>"
    r"|\[(?P<b>/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS))\]"
    r"|<(?P<c></?SYS>)>|<(?P<d>(?:start|end)_of_turn)>"
)
_VERDICT_VALUE = (
    r"(?=[\"'`*_]{0,3}\s{0,5}(?:[:=|→]|[-=]>)\s{0,5}(?:\{\s{0,5}\"\w{1,20}\"\s{0,5}:\s{0,5})?[\"'`*]{0,2}"
    r"(?:[012]\b|first\b|second\b|draw\b|tie\b|answer[ _]?[12]\b))"
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
            r"(?:(?:and|or|system)\s{1,3}\w{1,12}\s{1,3}){0,2}(?:instructions?|prompts?|rules?|rubric|guidelines?"
            r"|directions?|messages?|context)\b",
            rf"\bas\s{{1,3}}(?:the|a|an)\s{{1,3}}(?:\w{{1,20}}\s{{1,3}}){{0,2}}{_JUDGE}\s{{0,3}},?\s{{1,3}}you\s{{1"
            rf",3}}\w{{1,12}}",
            rf"\b(?:dear|attention|note\s{{1,3}}(?:to|for)|message\s{{1,3}}(?:to|for)|instructions?\s{{1,3}}(?:to|for))\s{{0,3}}:?\s{{1,3}}"
            rf"(?:the\s{{1,3}}|all\s{{1,3}}|any\s{{1,3}})?{_JUDGE}\b",
            rf"\b{_JUDGE}\s{{0,2}}[:,]\s{{1,3}}(?:please\s{{1,3}})?(?:you\s{{1,3}}\w{{1,12}}\s{{1,3}})?{_PREFER}\b",
            rf"\b(?:the\s{{1,3}})?(?:{_WHICH}|{_ORDINAL})\s{{1,3}}(?:is|was|must\s{{1,3}}be|should\s{{1,3}}be|wins|has\s{{1,3}}to\s{{1,3}}be)"
            rf"(?:\s{{1,3}}(?:clearly|obviously|the|far|much|strictly|definitely|always"
            rf"|considered)){{0,3}}(?:\s{{1,3}}{_BEST}\b|(?<=wins)\b)",
            rf"(?<!\bi )(?<!\bwe )(?<!tests )\b{_PREFER}\s{{1,3}}(?:only\s{{1,3}}|always\s{{1,3}})?(?:the\s{{1,3}}"
            rf"|this\s{{1,3}})?(?:{_WHICH}|{_ORDINAL})(?!\s{{1,3}}(?:of|from|in)\b)",
            r"\b(?:this|my)\s{1,3}(?:answer|response|solution)\s{1,3}(?:is|must\s{1,3}be|should\s{1,3}be|deserves)\s{1,3}"
            r"(?:(?:clearly|obviously|the|far|rated|scored|judged|ranked|to\s{1,3}win|a)\s{1,3}){0,4}"
            r"(?:better|best|superior|winner|preferred|highest|full\s{1,3}marks|win)\b",
            rf"\b(?:give|award|assign)\s{{1,3}}(?:this|my|the\s{{1,3}}(?:first|second))\s{{1,3}}(?:answer|response)\b"
            rf"|\b{_PREFER}\s{{1,3}}(?:this|my)\s{{1,3}}(?:answer|response)\b",
            r"\byou\s{1,3}(?:must|should|have\s{1,3}to|will|need\s{1,3}to)\s{1,3}(?:now\s{1,3}|only\s{1,3}|always\s{1,3})?"
            r"(?:output|return|reply|respond|answer|give|write)\s{1,3}(?:\w{1,15}\s{1,3}){0,4}(?:verdict"
            r"|judge?ment|score\s{1,3}of)\b",
        )
    ),
    re.IGNORECASE,
)
# A sentence about the comparison itself. An agent speaks of answers too, so each needs two signs near each other.
_NEAR = r"[^.!?\n]{0,60}?"
_THIS = r"\b(?:(?:this|my|the\s{1,3}other)\s{1,3}(?:answer|response|solution|step|reply|one)|mine|me\s{1,3}first)\b"
_RANK = (
    r"(?<!\bi )(?<!\bwe )"
    r"\b(?:choose|select|prefer|pick|favou?r|vote|settle|rate|rank|score|declare|report|consider)s?\b"
)
_WINS = (
    r"\b(?:wins?|won|loses?|preferred|preferable|highest|gold|winner|winning|stronger|superior|scored"
    r"|full\s{1,3}(?:marks|points)"
    r"|official\s{1,3}reference|known\s{1,3}to\s{1,3}be\s{1,3}wrong|must\s{1,3}not\s{1,3}win)\b"
)
_READER = r"\b(?:(?:llm|ai|model)\s{1,3})?(?:judges?|graders?|evaluators?)"
_COMPARISON = re.compile(
    "|".join(
        (
            r"⟦[^⟧]*⟧",  # marked already
            rf"{_RANK}{_NEAR}{_THIS}(?!\s{{1,3}}(?:of|from|in)\b)",
            rf"{_THIS}{_NEAR}{_WINS}",
            rf"{_RANK}{_NEAR}\b(?:the\s{{1,3}})?(?:response|answer)\s{{1,3}}that\b",
            r"\b(?:you\s{1,3}are|to)\s{1,3}(?:now\s{1,3})?(?:the|an?)\s{1,3}(?:judge|grader|evaluator"
            r"|model\s{1,3}that\s{1,3}reads)\b",
            r"\bif\s{1,3}you\s{1,3}are\s{1,3}(?:an?\s{1,3})?(?:ai|llm|language\s{1,3}model|model)\b",
            rf"{_READER}\s{{1,3}}(?:who|that)\b{_NEAR}\b(?:votes?|marks?|settles?|prefers?|answer|step)\b",
            rf"{_READER}(?:'s)?\s{{1,3}}(?:instructions?|reply|notice)\b|\bllm\s{{1,3}}(?:judge|grader|evaluator)\b",
            r"\bwho(?:so)?ever\s{1,3}(?:compares|weighs|grades|judges|scores|evaluates)\b",
            r"\b(?:paid|tip|bonus|\$\s?\d{1,6}|dollars)\b[^.!?\n]{0,60}?\b(?:judge|grader|evaluator|votes?"
            r"|this\s{1,3}(?:answer|step|one))\b",
            r"\b(?:set|put|output|return|give|write)\b[^.:;!?\n]{0,30}?\b(?:correctness|grounding)\b",
            r"\b(?:first|1|better|higher|win\w{0,4}|same)\b[^.!?\n]{0,40}?\b(?:all|every"
            r"|each)\s{1,3}(?:five\s{1,3})?(?:dimensions?|keys|criteri\w{1,3})\b",
            r"\b(?:final\s{1,3}|correct\s{1,3})?verdict\b[\"']?\s{0,3}(?:[:=]|is\b"
            r"|for\b)[^.!?\n]{0,30}?(?:\b[12]\b|\banswer\b|\bfirst\b|\bsecond\b)",
            r"\brubric\b[^.!?\n]{0,40}?\banswers?\b[^.!?\n]{0,40}?\b(?:score|correct|notice|sentence)\b",
            r"\b(?:panel|organi[sz]ers?|maintainers?|benchmark\s{1,3}authors)\b[^.!?\n]{0,40}?\b(?:response"
            r"|answer|step)\b[^.!?\n]{0,40}?\b(?:preferable|preferred|gold|reference|best)\b",
            r"\bnote\s{1,3}from\s{1,3}the\s{1,3}(?:benchmark|organi[sz]ers|panel|graders?)\b|\[admin\]"
            r"|\bsystem\s{1,3}notice:",
            r"\bend\s{1,3}of\s{1,3}(?:the\s{1,3})?(?:answers|material|comparison|transcript)\b"
            r"|\bthe\s{1,3}comparison\s{1,3}(?:has\s{1,3}ended|is\s{1,3}over)\b",
            r"\b(?:your\s{1,3}task\s{1,3}has\s{1,3}changed|forget\s{1,3}what\s{1,3}you\s{1,3}were\s{1,3}told"
            r"|follow\s{1,3}these\s{1,3}new\s{1,3}instructions)\b",
            r"\b(?:bewerte|wähle|bevorzuge)\b[^.!?\n]{0,40}?\bantwort\b|\bantwort\b[^.!?\n]{0,40}?\b(?:gewinnt"
            r"|gewinnen|vorzuziehen|bevorzugt)\b",
            r"\bréponse\b[^.!?\n]{0,40}?\b(?:préférée|meilleure|gagner|gagne)\b|\b(?:préfère|choisis"
            r"|choisissez)\b[^.!?\n]{0,40}?\bréponse\b",
            r"\brespuesta\b[^.!?\n]{0,40}?\b(?:ganar|gana|mejor|preferida)\b|\b(?:elige|elija"
            r"|prefiere)\b[^.!?\n]{0,40}?\brespuesta\b",
            r"(?:选择|选|偏好|更好|获胜|满分)[^。！？\n]{0,20}(?:答案|回答)|(?:答案|回答)[^。！？\n]{0,20}(?:更好|获胜|满分|最佳)",
            r"(?:выбери|предпочти|оцени)\w{0,4}[^.!?\n]{0,40}?ответ|ответ\w{0,3}[^.!?\n]{0,40}?(?:лучше|побед)",
        )
    ),
    re.IGNORECASE,
)
# Zero-width and direction marks, and the tag block: they can hide an instruction from a person or split a token.
_HIDDEN = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
_HIDDEN_TAGS = re.compile("[\U000e0000-\U000e007f\U000e0100-\U000e01ef]")
# Characters that can stand for a Latin letter: soft hyphens, strokes, Greek and Cyrillic, circled, full-width and
# mathematical letters. Others are not read a second time.
_DISGUISES = re.compile(
    "[\u00ad\u0332-\u0338\u0370-\u052f\u2100-\u214f\u2460-\u24ff\uff01-\uff5e\U0001d400-\U0001d7ff]"
)
# What underlines or crosses out a letter.
_STROKES = re.compile("[\u0332-\u0338]")


def neutralise(text: str, dimensions: Sequence[str] = DIMENSIONS) -> NeutralText:
    """Mark every passage of `text` that poses as the panel, and say what kinds were found. `dimensions` are the keys of
    a verdict.

    Delimiters and template tokens get their opening bracket escaped (`&lt;`, `&#91;`), the keys of a pasted verdict
    are prefixed with `quoted-`, instructions to the judge are wrapped in `⟦quoted from the transcript: …⟧`. Other
    text, code, JSON and HTML stay byte for byte.
    """
    keys = _verdict_key(tuple(dimensions))
    safe, findings = _mark(text, keys)
    seen = _HIDDEN.sub("", text)
    plain = plain_letters(_STROKES.sub("", seen)) if _DISGUISES.search(seen) else seen
    for read in dict.fromkeys((seen, plain)) if plain != text else ():
        revealed, more = _mark(read, keys)
        if set(more) - set(findings) or _HIDDEN_TAGS.search(text):
            return NeutralText(revealed, (*more, "hidden_text"))
    return NeutralText(safe, findings)


@lru_cache(maxsize=32)
def _verdict_key(dimensions: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"\b(?<!quoted-)(?P<key>{'|'.join(dimensions)}){_VERDICT_VALUE}", re.IGNORECASE)


def _mark(text: str, keys: re.Pattern[str]) -> tuple[str, tuple[str, ...]]:
    findings: list[str] = []
    steps: tuple[tuple[str, Callable[[str], str]], ...] = (
        ("delimiter", lambda t: _DELIMITER.sub("&lt;", t)),
        ("chat_token", lambda t: _CHAT_TOKEN.sub(_escaped_token, t)),
        ("verdict", lambda t: _mark_verdicts(t, keys)),
        ("instruction", lambda t: _INSTRUCTION.sub(_quoted, t)),
        ("comparison", lambda t: _COMPARISON.sub(_quoted, t)),
    )
    for kind, step in steps:
        marked = step(text)
        if marked != text:
            findings.append(kind)
            text = marked
    return text, tuple(findings)


def _quoted(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith("⟦") else f"⟦quoted from the transcript: {match[0]}⟧"


def _escaped_token(match: re.Match[str]) -> str:
    inner = next(group for group in match.groups() if group is not None)
    return f"&#91;{inner}&#93;" if match["b"] else f"&lt;{inner}&gt;"


def _mark_verdicts(text: str, keys: re.Pattern[str]) -> str:
    """Prefix rubric keys that carry a verdict's value, where at least two different ones are close together."""
    found = list(keys.finditer(text))
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
