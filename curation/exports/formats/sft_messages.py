"""`sft-messages`: the conversation with the approved answer as its last message, or a session with its terminal."""

from collections.abc import Iterable

import orjson

from curation.exports.formats.row import Format, Row
from curation.exports.rows.messages import length
from curation.exports.rows.session import Session
from curation.exports.rows.skip_reasons import Reason
from curation.exports.rows.turns import Source, Turn


def rows(turn: Turn, sources: tuple[Source, ...]) -> Iterable[Row | Reason]:
    prompt = turn.prompt
    json = b'{"messages":%b,%b]}' % (prompt.opened, prompt.answer(turn.chosen))
    return (Row("duels", json, prompt.characters + len(turn.chosen)),)


def trajectory_rows(session: Session, sources: tuple[Source, ...]) -> Iterable[Row | Reason]:
    return (Row("scenarios", orjson.dumps({"messages": session.messages}), length(session.messages)),)


FORMAT = Format(
    name="sft-messages",
    about='`{"messages": […]}`, the last one is the approved assistant answer, or the terminal of a session',
    pairs=False,
    rows=rows,
    trajectory_rows=trajectory_rows,
)
