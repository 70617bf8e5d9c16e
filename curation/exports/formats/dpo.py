"""`dpo`: TRL's preference rows with an explicit prompt. A side is one message, or all that followed in a session."""

from collections.abc import Iterator

import orjson

from curation.exports.formats.row import Format, Row
from curation.exports.hygiene import Reason
from curation.exports.messages import assistant, length
from curation.exports.session import Session, preference
from curation.exports.turns import Source, Turn, pairs


def rows(turn: Turn, sources: tuple[Source, ...]) -> Iterator[Row | Reason]:
    tools = turn.prompt.tools
    for pair in pairs(turn, sources):
        if isinstance(pair, Reason):
            yield pair
            continue
        body: dict[str, object] = {
            "prompt": orjson.Fragment(turn.prompt.json),
            "chosen": [assistant(pair.chosen, tools=tools)],
            "rejected": [assistant(pair.rejected, tools=tools)],
        }
        yield Row(pair.source, body, turn.prompt.characters + max(len(pair.chosen), len(pair.rejected)))


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
        yield Row("scenarios", found._asdict(), longest, str(rival.pair_id))


FORMAT = Format(
    name="dpo",
    about='`{"prompt": […], "chosen": […], "rejected": […]}`, both sides begin with an assistant message',
    pairs=True,
    rows=rows,
    trajectory_rows=trajectory_rows,
)
