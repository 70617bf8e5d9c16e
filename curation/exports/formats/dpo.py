"""`dpo`: TRL's preference rows with an explicit prompt. A side is one message, or the rest of a session."""

from collections.abc import Iterator

import orjson

from curation.exports.formats.row import Format, Row, Source, Turn
from curation.exports.rows.messages import length
from curation.exports.rows.session import Session, preference
from curation.exports.rows.skip_reasons import SkipReason, pair_reason


def turn_rows(turn: Turn, sources: tuple[Source, ...]) -> list[Row | SkipReason]:
    rows: list[Row | SkipReason] = []
    if "duels" in sources:
        if turn.draw:
            rows.append(SkipReason.DRAW)
        elif turn.rejected is None:
            rows.append(SkipReason.NO_OPPONENT)
        else:
            rows.append(_row(turn, turn.rejected, "duels"))
    if "revisions" in sources and turn.replaced is not None:
        rows.append(_row(turn, turn.replaced, "revisions"))
    return rows


def _row(turn: Turn, rejected: str, source: Source) -> Row | SkipReason:
    reason = pair_reason(turn.chosen, rejected)
    if reason is not None:
        return reason
    prompt = turn.prompt
    sides = prompt.answer(turn.chosen), prompt.answer(rejected)
    json = b'{"prompt":%b],"chosen":[%b],"rejected":[%b]}' % (prompt.opened, *sides)
    return Row(source, json, prompt.characters + max(len(turn.chosen), len(rejected)))


def session_rows(session: Session, sources: tuple[Source, ...]) -> Iterator[Row | SkipReason]:
    if "scenarios" not in sources:
        return
    if not session.rivals:
        yield SkipReason.NO_PAIR
    for rival in session.rivals:
        found = preference(session.messages, rival)
        if isinstance(found, SkipReason):
            yield found
            continue
        longest = length(found.prompt) + max(length(found.chosen), length(found.rejected))
        yield Row("scenarios", orjson.dumps(found._asdict()), longest, str(rival.pair_id))


FORMAT = Format(
    name="dpo",
    about='`{"prompt": […], "chosen": […], "rejected": […]}`, both sides begin with an assistant message',
    pairs=True,
    turn_rows=turn_rows,
    session_rows=session_rows,
)
