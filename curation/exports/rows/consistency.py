"""Consistency: no two rows of an export teach the opposite of one another, and all rows of a file have its columns."""

from curation.exports.rows.claims import PreferenceClaim
from curation.exports.rows.filter import FilteredSample, Line
from curation.exports.rows.skip_reasons import SkipReason


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

    def keep(self, filtered: FilteredSample) -> None:
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

    def _note_column(self, line: Line) -> None:
        (self._without_images if line.images is None else self.with_images).add(line.format)
        if not self._is_known and line.format in self.with_images & self._without_images:
            self.is_late = True

    def _keep_repeated(self, filtered: FilteredSample) -> None:
        claims = [(line.format, line.claim) for line in filtered.repeated if line.claim is not None]
        found = [(name, self._is_contradicted(claim)) for name, claim in claims]
        for name in dict.fromkeys(name for name, contradicted in found if contradicted):
            filtered.skip(SkipReason.CONTRADICTED, name)
            if (name, False) not in found:
                filtered.skipped[SkipReason.DUPLICATE].remove(name)
        if not filtered.skipped.get(SkipReason.DUPLICATE, [""]):
            del filtered.skipped[SkipReason.DUPLICATE]

    def _is_contradicted(self, claim: PreferenceClaim) -> bool:
        """Note the claim, and return whether its row is left out because another row says the opposite."""
        contradicted = claim.opposite in self._claims
        self._claims.add(claim.says)
        if contradicted and not self._is_known:
            self.is_late = True
        return contradicted and claim.yields

    def _reason(self, line: Line, claim: PreferenceClaim) -> SkipReason | None:
        if self._is_contradicted(claim):
            return SkipReason.CONTRADICTED
        if not line.rejected and claim.opposite:
            return None
        avoided = (line.format, claim.says)
        if avoided in self._avoided:
            return SkipReason.REPEATED if claim.opposite else SkipReason.SAME_PROMPT
        self._avoided.add(avoided)
        return None
