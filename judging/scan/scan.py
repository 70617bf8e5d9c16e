"""Find secrets and personal data in a text, and replace them by placeholders such as `<EMAIL>`."""

import hashlib
import re
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from judging.scan.decode import DECODERS, Decoder, views
from judging.scan.likely import Searches, likely
from judging.scan.rules import BY_NAME, CONTROL, RULES, Kind, Rule

LIBRARIES = ("kingfisher-secret-scanner", "phonenumberslite", "python-stdnum")
# Nothing is looked for in short names, such as keys and the words of the message format, and in images as text.
_FORMAT_KEYS = frozenset(("role", "type", "id", "tool_call_id", "kind"))
_LONGER_THAN_NAMES = 16
_IMAGE = re.compile(r"data:image/[\w.+-]+;base64,[\w+/=-]*")
_START = attrgetter("start")
_BLOCK = 16_000  # characters of the texts that are asked about together
_RULES = Searches(*RULES)
_DECODED_RULES = Searches(*(rule for rule in RULES if rule.kind != CONTROL))
_LISTS = (list, tuple)
_WITHOUT_TEXT = frozenset((int, float, bool, type(None)))


class ScanFinding(NamedTuple):
    """A rule's finding: characters `start` to `end` of the text."""

    rule: str
    start: int
    end: int

    @property
    def kind(self) -> Kind:
        return BY_NAME[self.rule].kind


def scan(text: str) -> tuple[ScanFinding, ...]:
    """Return the findings in their order. Where two overlap, the earlier rule of `RULES` counts: a known vendor's key
    goes before a value that only looks random.

    A text is also read decoded (`judging.scan.decode`): `ann\\u0040acme.com` is an address, and the `n` of `\\n` is no
    part of the key after it. A finding there is the characters of the text that it was decoded from, and goes before
    findings in the text as it is.
    """
    return _scan(text, _RULES.likely(text), DECODERS.likely(text))


def scan_each(texts: Iterable[str]) -> Iterator[tuple[ScanFinding, ...]]:
    """Yield the findings of each text, as `scan` returns them. Most of the time of a short text is to know that nearly
    no rule is about it, which is asked once for many."""
    for block in _blocks(texts):
        whole = "\n".join(block)
        rules, decoders = _RULES.likely(whole), DECODERS.likely(whole)
        for text in block:
            if len(block) > 1:
                own_rules, own_decoders = rules and likely(rules, text), likely(decoders, text)
            else:
                own_rules, own_decoders = rules, decoders
            yield _scan(text, own_rules, own_decoders) if own_rules or own_decoders else ()


def _blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    block: list[str] = []
    size = 0
    for text in texts:
        block.append(text)
        size += len(text)
        if size >= _BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _scan(text: str, rules: Sequence[Rule], decoders: Sequence[Decoder]) -> tuple[ScanFinding, ...]:
    found = _found(text, rules) if rules else []
    read: list[ScanFinding] = []
    for view in views(text, decoders) if decoders else ():
        # The longest first: a value that is put together goes before a finding in one of its pieces.
        for rule, *span in sorted(
            _found(view.text, _DECODED_RULES.likely(view.text)), key=lambda one: one.start - one.end
        ):
            for start, end in view.spans(*span):
                if _is_free(start, end, read):
                    insort(read, ScanFinding(rule, start, end), key=_START)
    if not read:
        return tuple(found)
    others = (one for one in found if _is_free(one.start, one.end, read))
    return tuple(sorted([*read, *others], key=_START))


def _is_free(start: int, end: int, found: Sequence[ScanFinding]) -> bool:
    """Return whether none of the findings, which are in their order and apart, overlaps these characters."""
    before = bisect_left(found, end, key=_START)
    return before == 0 or found[before - 1].end <= start


def _found(text: str, rules: Sequence[Rule]) -> list[ScanFinding]:
    found: list[ScanFinding] = []
    for rule in rules:
        spans = list(rule.find(text))
        if not spans:
            continue
        kept: list[ScanFinding] = []
        for start, end in sorted(spans):
            if _is_free(start, end, found) and (not kept or kept[-1].end <= start):
                kept.append(ScanFinding(rule.name, start, end))
        found = sorted(found + kept, key=_START)
    return found


def texts_of(value: object) -> Iterator[str]:
    """Yield every text in a JSON value that an export may write, such as the messages of a history or the definitions
    of tools, in its order. A key is a text too."""
    found: list[str] = []
    _add_texts(value, found)
    return iter(found)


def _add_texts(value: object, found: list[str]) -> None:
    if isinstance(value, str):
        if not (value.startswith("data:image/") and _IMAGE.fullmatch(value)):
            found.append(value)
    elif isinstance(value, _LISTS):  # a constant: a union would be made again for each value
        for inner in value:
            _add_texts(inner, found)
    elif isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101  another mapping is known slowly
        for key, inner in value.items():
            if len(key) >= _LONGER_THAN_NAMES or not key.isidentifier():
                found.append(key)
            if type(inner) in _WITHOUT_TEXT:
                continue
            if key not in _FORMAT_KEYS or not isinstance(inner, str) or len(inner) >= _LONGER_THAN_NAMES:
                _add_texts(inner, found)


@cache
def rule_set_version() -> str:
    """Return the version of the rules: a hash of this package and the versions of its libraries. A stored result counts
    only under the version that made it."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    for name in LIBRARIES:
        digest.update(f"{name} {version(name)}\n".encode())
    return digest.hexdigest()[:16]


def kinds_of(findings: Iterable[ScanFinding]) -> set[Kind]:
    return {finding.kind for finding in findings}


_NUMBERED = re.compile(rf"<({'|'.join(sorted({rule.mask for rule in BY_NAME.values()}))})_\d+>")


class Masks:
    """The placeholders of one row: the same value has the same placeholder in all texts of the row, and a second value
    of the same type is `<EMAIL_2>`."""

    def __init__(self) -> None:
        self._placeholders: dict[tuple[str, str], str] = {}
        self._numbers: dict[str, int] = {}

    def apply(self, text: str, findings: Iterable[ScanFinding], masked: Callable[[ScanFinding], bool]) -> str:
        """Return the text with those findings replaced for which `masked` is true. Findings are in their order and do
        not overlap."""
        parts: list[str] = []
        position = 0
        for finding in findings:
            if masked(finding):
                value = text[finding.start : finding.end]
                parts += text[position : finding.start], self._placeholder(finding.rule, value)
                position = finding.end
        return "".join((*parts, text[position:]))

    def _placeholder(self, rule: str, value: str) -> str:
        word = BY_NAME[rule].mask
        if (word, value) not in self._placeholders:
            number = self._numbers[word] = self._numbers.get(word, 0) + 1
            self._placeholders[word, value] = f"<{word}>" if number == 1 else f"<{word}_{number}>"
        return self._placeholders[word, value]


def without_numbers(text: str) -> str:
    """Return the text with one placeholder for all values of a type."""
    return _NUMBERED.sub(r"<\1>", text)
