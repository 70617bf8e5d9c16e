"""Consistency: no two rows of an export teach the opposite of one another."""

from curation.exports.rows.claims import Claim
from curation.exports.rows.filter import FilteredSample, Line
from curation.exports.rows.skip_reasons import SkipReason


class Consistency:
    """The claims of all rows of an export, and which of the rows may leave.

    A row can only be compared with those before it. If `is_late`, one had left when another claimed the opposite: then
    all rows are made again with the claims that are known. That is rare, so most exports read their rows once.
    """

    def __init__(self) -> None:
        self._claims: set[bytes] = set()
        # Answers to be avoided that left: an answer may have lost to several approved ones of its prompt, and would be
        # in the files once for each, in any split.
        self._avoided: set[tuple[str, bytes]] = set()
        self._is_known = self.is_late = False

    def again(self) -> None:
        """Begin a second pass over the same samples."""
        self._avoided.clear()
        self._is_known, self.is_late = True, False

    def keep(self, filtered: FilteredSample) -> None:
        """Skip the sample's rows that contradict another row, or repeat what is to be avoided."""
        lines, filtered.lines = filtered.lines, []
        for line in lines:
            reason = None if line.claim is None else self._reason(line, line.claim)
            if reason is None:
                filtered.lines.append(line)
            else:
                filtered.skip(reason, line.format)

    def _reason(self, line: Line, claim: Claim) -> SkipReason | None:
        contradicted = claim.opposite in self._claims
        self._claims.add(claim.says)
        if contradicted and not self._is_known:
            self.is_late = True
        if contradicted and claim.yields:
            return SkipReason.CONTRADICTED
        if not line.rejected:
            return None
        avoided = (line.format, claim.says)
        if avoided in self._avoided:
            return SkipReason.REPEATED
        self._avoided.add(avoided)
        return None
