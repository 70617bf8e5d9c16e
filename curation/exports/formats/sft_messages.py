"""`sft-messages`: a conversation that ends with the approved answer, or a whole session."""

import orjson

from curation.exports.formats.row import Format, Row, Source, Turn
from curation.exports.rows.messages import length
from curation.exports.rows.session import Session


def turn_rows(turn: Turn, sources: tuple[Source, ...]) -> tuple[Row]:
    prompt = turn.prompt
    json = b'{"messages":%b,%b]}' % (prompt.opened, prompt.answer(turn.chosen))
    return (Row("duels", json, prompt.characters + len(turn.chosen)),)


def session_rows(session: Session, sources: tuple[Source, ...]) -> tuple[Row]:
    return (Row("scenarios", orjson.dumps({"messages": session.messages}), length(session.messages)),)


FORMAT = Format(
    name="sft-messages",
    about='`{"messages": […]}`, the last one is the approved assistant answer, or the terminal of a session',
    pairs=False,
    turn_rows=turn_rows,
    session_rows=session_rows,
)
