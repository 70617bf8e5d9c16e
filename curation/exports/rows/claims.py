"""Claims: the statement of a row about an answer, so that contradicting rows can be found."""

from collections.abc import Sequence
from hashlib import blake2b, sha256
from typing import NamedTuple

import orjson

from curation.exports.formats.row import DataRow, Format
from curation.exports.rows.messages import ExportedMessage, Tool


class PreferenceClaim(NamedTuple):
    """The statement of a row of a format with pairs about an answer to a prompt, and its opposite, 8 bytes of a digest
    each.

    A preference is the opposite of the one with its sides swapped; an answer to avoid is the opposite of one to learn.
    A row with `yields` is left out if another row claims the opposite; an approved answer is kept all the same.
    The prompt of a group has no opposite.
    """

    says: bytes
    opposite: bytes
    yields: bool


def claim_of(form: Format, row: DataRow, tools: Sequence[Tool], group: str) -> PreferenceClaim | None:
    """Return the row's claim, or None if its format only has approved answers. Case and white space make no other
    answer, as for duplicates."""
    if form.of_groups:
        # Other samples of the scenario or task have the same row.
        return PreferenceClaim(_digest(form.name.encode(), group.encode()), b"", yields=False)
    if not form.pairs:
        return None
    prompt = sha256(orjson.dumps([row.prompt, tools])).digest()
    sides = [_answer(side) for side in row.sides]
    if len(sides) == 2:
        return PreferenceClaim(_digest(prompt, *sides), _digest(prompt, *reversed(sides)), yields=True)
    learned, avoided = _digest(prompt, b"+", *sides), _digest(prompt, b"-", *sides)
    return (
        PreferenceClaim(avoided, learned, yields=True)
        if row.rejected
        else PreferenceClaim(learned, avoided, yields=False)
    )


def _answer(side: Sequence[ExportedMessage]) -> bytes:
    texts = [{**message, "content": " ".join(str(message.get("content") or "").casefold().split())} for message in side]
    return orjson.dumps(texts)


def _digest(prompt: bytes, *parts: bytes) -> bytes:
    return blake2b(b"\n".join([prompt, *parts]), digest_size=8).digest()
