"""Seats: which answer sits left, and what `left`, `king` or `draw` mean as a pick."""

import secrets
import zlib

from curation.review.models import Pick
from curation.web.problems import FieldError, Invalid

KING_LEFT, CHALLENGER_LEFT = "king_left", "challenger_left"
PICK_OF_WORD = {
    "challenger": Pick.CANDIDATE,
    "candidate": Pick.CANDIDATE,
    "king": Pick.OPPONENT,
    "opponent": Pick.OPPONENT,
    "reference": Pick.OPPONENT,
    "draw": Pick.DRAW,
}
WORDS = ("left", "right", *PICK_OF_WORD)


def draw_swapped(*, blind: bool) -> bool:
    """True puts the challenger on the left. Where nobody is blind the king always sits left, so that eyes learn it."""
    return blind and secrets.randbelow(2) == 1


def onlooker_swapped(sample_id: int, *, blind: bool) -> bool:
    """Seats for someone who looks without a lease: always the same for a sample, and no pattern over samples."""
    return blind and zlib.crc32(b"seat %d" % sample_id) & 1 == 1


def seat_word(swapped: bool) -> str:
    return CHALLENGER_LEFT if swapped else KING_LEFT


def resolve_pick(preference: str, *, swapped: bool | None) -> str:
    """The pick behind a preference; "" for none. `swapped` is None where the caller holds no lease and has no seats."""
    if not preference:
        return ""
    if preference in PICK_OF_WORD:
        return PICK_OF_WORD[preference].value
    if preference not in WORDS:
        raise _refused(f"`preference` is one of {', '.join(WORDS)}, not {preference!r}.")
    if swapped is None:
        raise _refused(
            "left and right are the seats of a lease, and you hold none on this sample: say king or challenger."
        )
    return (Pick.CANDIDATE if (preference == "left") == swapped else Pick.OPPONENT).value


def _refused(text: str) -> Invalid:
    return Invalid(text, errors=[FieldError("preference", text)])
