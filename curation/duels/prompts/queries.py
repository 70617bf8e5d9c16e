"""Read a prompt's history as a transcript, and its reference unless it is hidden from a blind reviewer."""

from typing import Any

from curation.duels.models import Duel, Opponent, Prompt
from curation.projects.access import Access
from curation.samples.blind import record_unblinding, reviews_blind
from curation.samples.models import SampleStatus
from curation.web.text.transcript import Chat, Source, TurnPosition


def history_of(prompt: Prompt, *, at: TurnPosition | None = None) -> Chat:
    """Return the history, to be opened at `at`. Pages show its begin and end, and load the rest."""
    source = Source(prompt.pk, "turn", "prompt-window", "prompt-turn", "prompt-find", "prompt-raw")
    return Chat(prompt.text.history, source, at=at)


def reference_shown_to(access: Access, prompt: Prompt) -> dict[str, Any] | None:
    """Return the reference; None for a blind reviewer while it is one side of a pending sample."""
    reference: dict[str, Any] | None = prompt.text.reference
    sides = Duel.objects.filter(prompt=prompt, opponent=Opponent.REFERENCE, sample__status=SampleStatus.PENDING)
    if reviews_blind(access):
        return None if sides.exists() else reference
    record_unblinding(access, sides.values_list("sample_id", flat=True))
    return reference
