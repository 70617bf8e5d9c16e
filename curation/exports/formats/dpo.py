"""`dpo`: TRL's preference rows with an explicit prompt."""

from collections.abc import Iterator

from curation.exports.formats.row import Format, Row
from curation.exports.hygiene import Reason
from curation.exports.messages import assistant
from curation.exports.turns import Source, Turn, pairs


def rows(turn: Turn, sources: tuple[Source, ...]) -> Iterator[Row | Reason]:
    tools = turn.prompt.tools
    for pair in pairs(turn, sources):
        if isinstance(pair, Reason):
            yield pair
            continue
        body: dict[str, object] = {
            "prompt": turn.prompt.messages,
            "chosen": [assistant(pair.chosen, tools=tools)],
            "rejected": [assistant(pair.rejected, tools=tools)],
        }
        yield Row(pair.source, body, turn.prompt.characters + max(len(pair.chosen), len(pair.rejected)))


FORMAT = Format("dpo", '`{"prompt": […], "chosen": [assistant], "rejected": [assistant]}`', rows)
