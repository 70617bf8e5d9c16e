"""Read a prompt's history as a transcript."""

from curation.duels.models import Prompt
from curation.web.text.chat import Chat
from curation.web.text.transcript import Position, Source


def history_of(prompt: Prompt, *, at: Position | None = None) -> Chat:
    """Return the history, to be opened at `at`. Pages show its begin and end, and load the rest."""
    source = Source(prompt.pk, "turn", "prompt-window", "prompt-turn", "prompt-find", "prompt-raw")
    return Chat(prompt.text.history, source, at=at)
