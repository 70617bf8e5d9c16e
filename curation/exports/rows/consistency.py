"""Consistency: no two rows of an export teach the opposite of one another, and all rows of a file have its columns.

A row of a format with pairs states a claim about an answer, by which rows that contradict it are found.
"""

from collections.abc import Sequence
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, NamedTuple

import orjson

from curation.exports.formats.row import Format, Row
from curation.exports.rows.messages import Message, Tool
from curation.exports.rows.skip_reasons import SkipReason

if TYPE_CHECKING:
    from curation.exports.rows.filter import FilteredSample, Line


class Claim(NamedTuple):
    """The statement of a row of a format with pairs about an answer to a prompt, and its opposite, 8 bytes of a digest
    each.

    A preference is the opposite of the one with its sides swapped; an answer to avoid is the opposite of one to learn.
    A row with `yields` is left out if another row claims the opposite; an approved answer is kept all the same.
    The prompt of a group has no opposite.
    """

    says: bytes
    opposite: bytes
    yields: bool


def claim_of(form: Format, row: Row, tools: Sequence[Tool], group: str) -> Claim | None:
    """Return the row's claim, or None if its format only has approved answers. Case and white space make no other
    answer, as for duplicates."""
    if form.of_groups:
        # Other samples of the scenario or task have the same row.
        return Claim(_digest(form.name.encode(), group.encode()), b"", yields=False)
    if not form.pairs:
        return None
    prompt = sha256(orjson.dumps([row.prompt, tools])).digest()
    sides = [_answer(side) for side in row.sides]
    if len(sides) == 2:
        return Claim(_digest(prompt, *sides), _digest(prompt, *reversed(sides)), yields=True)
    learned, avoided = _digest(prompt, b"+", *sides), _digest(prompt, b"-", *sides)
    return Claim(avoided, learned, yields=True) if row.rejected else Claim(learned, avoided, yields=False)


def _answer(side: Sequence[Message]) -> bytes:
    texts = [{**message, "content": " ".join(str(message.get("content") or "").casefold().split())} for message in side]
    return orjson.dumps(texts)


def _digest(prompt: bytes, *parts: bytes) -> bytes:
    return blake2b(b"\n".join([prompt, *parts]), digest_size=8).digest()


class Consistency:
    """The claims of all rows of an export, and which of the rows may leave.

    A row can only be compared with those before it. If `is_late`, one had left when another claimed the opposite, or
    had images in a format whose earlier rows have no column for them: then all rows are made again with what is known.
    That is rare, so most exports read their rows once. `with_images` are the formats with that column.
    """

    def __init__(self) -> None:
        self._claims: set[bytes] = set()
        # Prompts of groups, and answers to be avoided, that left: an answer may have lost to several approved ones of
        # its prompt, and would be in the files once for each, in any split.
        self._avoided: set[tuple[str, bytes]] = set()
        self.with_images: set[str] = set()
        self._without_images: set[str] = set()
        self._is_known = self.is_late = False

    def again(self) -> None:
        """Begin a second pass over the same samples."""
        self._avoided.clear()
        self._without_images.clear()
        self._is_known, self.is_late = True, False

    def keep(self, filtered: "FilteredSample") -> None:
        """Skip the sample's rows that contradict another row, or repeat an answer to avoid.

        Duplicates are not exported, but rows that contradict them are skipped too. Their own contradicting rows are
        reported as contradicted, not as duplicates.
        """
        if filtered.repeated:
            self._keep_repeated(filtered)
        lines, filtered.lines = filtered.lines, []
        for line in lines:
            reason = None if line.claim is None else self._reason(line, line.claim)
            if reason is None:
                filtered.lines.append(line)
                self._note_column(line)
            else:
                filtered.skip(reason, line.format)

    def _note_column(self, line: "Line") -> None:
        (self._without_images if line.images is None else self.with_images).add(line.format)
        if not self._is_known and line.format in self.with_images & self._without_images:
            self.is_late = True

    def _keep_repeated(self, filtered: "FilteredSample") -> None:
        claims = [(line.format, line.claim) for line in filtered.repeated if line.claim is not None]
        found = [(name, self._is_contradicted(claim)) for name, claim in claims]
        for name in dict.fromkeys(name for name, contradicted in found if contradicted):
            filtered.skip(SkipReason.CONTRADICTED, name)
            if (name, False) not in found:
                filtered.skipped[SkipReason.DUPLICATE].remove(name)
        if not filtered.skipped.get(SkipReason.DUPLICATE, [""]):
            del filtered.skipped[SkipReason.DUPLICATE]

    def _is_contradicted(self, claim: Claim) -> bool:
        """Note the claim, and return whether its row is left out because another row says the opposite."""
        contradicted = claim.opposite in self._claims
        self._claims.add(claim.says)
        if contradicted and not self._is_known:
            self.is_late = True
        return contradicted and claim.yields

    def _reason(self, line: "Line", claim: Claim) -> SkipReason | None:
        if self._is_contradicted(claim):
            return SkipReason.CONTRADICTED
        if not line.rejected and claim.opposite:
            return None
        avoided = (line.format, claim.says)
        if avoided in self._avoided:
            return SkipReason.REPEATED if claim.opposite else SkipReason.SAME_PROMPT
        self._avoided.add(avoided)
        return None
