"""`dpo`: TRL's preference rows with an explicit prompt. A side is one message, or all that followed in a session."""

from collections.abc import Iterable, Iterator

import orjson

from curation.exports.formats.row import Format, Row
from curation.exports.rows.messages import length
from curation.exports.rows.session import Session, preference
from curation.exports.rows.skip_reasons import Reason
from curation.exports.rows.turns import Source, Turn, pairs


def rows(turn: Turn, sources: tuple[Source, ...]) -> Iterable[Row | Reason]:
    prompt = turn.prompt
    made: list[Row | Reason] = []
    for pair in pairs(turn, sources):
        if isinstance(pair, Reason):
            made.append(pair)
            continue
        sides = prompt.answer(pair.chosen), prompt.answer(pair.rejected)
        json = b'{"prompt":%b],"chosen":[%b],"rejected":[%b]}' % (prompt.opened, *sides)
        made.append(Row(pair.source, json, prompt.characters + max(len(pair.chosen), len(pair.rejected))))
    return made


def trajectory_rows(session: Session, sources: tuple[Source, ...]) -> Iterator[Row | Reason]:
    if "scenarios" not in sources:
        return
    if not session.rivals:
        yield Reason.NO_PAIR
    for rival in session.rivals:
        found = preference(session.messages, rival)
        if isinstance(found, Reason):
            yield found
            continue
        longest = length(found.prompt) + max(length(found.chosen), length(found.rejected))
        yield Row("scenarios", orjson.dumps(found._asdict()), longest, str(rival.pair_id))


FORMAT = Format(
    name="dpo",
    about='`{"prompt": […], "chosen": […], "rejected": […]}`, both sides begin with an assistant message',
    pairs=True,
    rows=rows,
    trajectory_rows=trajectory_rows,
)
