"""Find secrets and personal data in a text."""

import hashlib
import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from judging.scan.decode import views
from judging.scan.rules import BY_NAME, CONTROL, RULES, Kind, Rule

LIBRARIES = ("kingfisher-secret-scanner", "phonenumberslite", "python-stdnum")
# Nothing is looked for in short names, such as keys and the words of the message format, and in images as text.
_FORMAT_KEYS = frozenset(("role", "type", "id", "tool_call_id", "kind"))
_LONGER_THAN_NAMES = 16
_IMAGE = re.compile(r"data:image/[\w.+-]+;base64,[\w+/=-]*")
_START = attrgetter("start")
_DECODED_RULES = tuple(rule for rule in RULES if rule.kind != CONTROL)


class Finding(NamedTuple):
    """A rule's finding: characters `start` to `end` of the text."""

    rule: str
    start: int
    end: int

    @property
    def kind(self) -> Kind:
        return BY_NAME[self.rule].kind


def scan(text: str) -> tuple[Finding, ...]:
    """Return the findings in their order. Where two overlap, the earlier rule of `RULES` counts: a known vendor's key
    goes before a value that only looks random.

    A text is also read decoded (`judging.scan.decode`): `ann\\u0040acme.com` is an address, and the `n` of `\\n` is no
    part of the key after it. A finding there is the characters of the text that it was decoded from, and goes before
    findings in the text as it is.
    """
    found = _scan(text, RULES)
    read: list[Finding] = []
    for view in views(text):
        for rule, *span in _scan(view.text, _DECODED_RULES):
            start, end = view.span(*span)
            if _is_free(start, end, read):
                insort(read, Finding(rule, start, end), key=_START)
    if not read:
        return tuple(found)
    others = (one for one in found if _is_free(one.start, one.end, read))
    return tuple(sorted([*read, *others], key=_START))


def _is_free(start: int, end: int, found: Sequence[Finding]) -> bool:
    """Return whether none of the findings, which are in their order and apart, overlaps these characters."""
    before = bisect_left(found, end, key=_START)
    return before == 0 or found[before - 1].end <= start


def _scan(text: str, rules: Sequence[Rule]) -> list[Finding]:
    found: list[Finding] = []
    lower = ""
    for rule in rules:
        if rule.anchors:
            if rule.lower and not lower:
                lower = text.lower()
            searched = lower if rule.lower else text
            # A loop, as most texts have no anchor of any rule: `any` takes three times as long.
            for anchor in rule.anchors:
                if anchor in searched:
                    break
            else:
                continue
        spans = list(rule.find(text))
        if not spans:
            continue
        kept: list[Finding] = []
        for start, end in sorted(spans):
            if _is_free(start, end, found) and (not kept or kept[-1].end <= start):
                kept.append(Finding(rule.name, start, end))
        found = sorted(found + kept, key=_START)
    return found


def texts_of(value: object) -> Iterator[str]:
    """Yield every text in a JSON value that an export may write, such as the messages of a history or the definitions
    of tools, in its order. A key is a text too."""
    if isinstance(value, str):
        if not _IMAGE.fullmatch(value):
            yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if len(key) >= _LONGER_THAN_NAMES or not key.isidentifier():
                yield key
            if key not in _FORMAT_KEYS or not isinstance(inner, str) or len(inner) >= _LONGER_THAN_NAMES:
                yield from texts_of(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_of(inner)


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


def kinds_of(findings: Iterable[Finding]) -> set[Kind]:
    return {finding.kind for finding in findings}
