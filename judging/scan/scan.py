"""Find secrets and personal data in a text."""

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from judging.scan.rules import BY_NAME, RULES, Kind

LIBRARIES = ("phonenumberslite", "python-stdnum")


class Finding(NamedTuple):
    """What a rule found: characters `start` to `end` of the text."""

    rule: str
    start: int
    end: int

    @property
    def kind(self) -> Kind:
        return BY_NAME[self.rule].kind


def scan(text: str) -> tuple[Finding, ...]:
    """Return the findings in their order. Where two overlap, the earlier rule of `RULES` counts: a known vendor's key
    goes before a value that only looks random."""
    found: list[Finding] = []
    lower = ""
    for rule in RULES:
        if rule.anchors:
            if rule.lower and not lower:
                lower = text.lower()
            searched = lower if rule.lower else text
            if not any(anchor in searched for anchor in rule.anchors):
                continue
        for start, end in rule.find(text):
            if not any(start < other.end and other.start < end for other in found):
                found.append(Finding(rule.name, start, end))
    found.sort(key=lambda finding: finding.start)
    return tuple(found)


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
