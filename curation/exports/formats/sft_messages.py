"""`sft-messages`: the conversation with the approved answer as its last message."""

from collections.abc import Iterator

from curation.exports.formats.row import Format, Row
from curation.exports.hygiene import Reason
from curation.exports.messages import assistant
from curation.exports.turns import Source, Turn


def rows(turn: Turn, sources: tuple[Source, ...]) -> Iterator[Row | Reason]:
    messages = [*turn.prompt.messages, assistant(turn.chosen, tools=turn.prompt.tools)]
    yield Row("duels", {"messages": messages}, turn.prompt.characters + len(turn.chosen))


FORMAT = Format("sft-messages", '`{"messages": […]}`, the last one is the approved assistant answer', rows)
