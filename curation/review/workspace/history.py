"""The messages before a sample's turn."""

from collections.abc import Sequence
from typing import cast

from curation.duels.models import PromptText
from curation.samples.models import Sample
from curation.web.text.chat import Chat
from curation.web.text.transcript import Recorded, Source


def history_of(sample: Sample) -> Chat:
    """The history as imported; empty for a sample without a duel."""
    found = PromptText.objects.filter(prompt__duels__sample=sample).values_list("history", flat=True).first()
    urls = ("history-window", "history-turn", "history-find", "history-raw")
    return Chat(cast(Sequence[Recorded], found or []), Source(sample.pk, "turn", *urls))
