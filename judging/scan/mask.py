"""Replace findings by placeholders such as `<EMAIL>`."""

import re
from collections.abc import Callable, Iterable

from judging.scan.rules import BY_NAME
from judging.scan.scan import ScanFinding

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
