"""The messages before a sample's turn, and the tools that they may call."""

import json
from collections.abc import Sequence

from django.utils.safestring import SafeString

from curation.duels.models import PromptText
from curation.samples.models import Sample
from curation.web.text.chat import Chat
from curation.web.text.markup import marked, scan_marks
from curation.web.text.transcript import Recorded, Source, TurnPosition

# Prefix of the ids of the marks in the tools.
TOOLS_PREFIX = "scan-tools"


class History(Chat):
    """The history as imported, with the definitions of its tools."""

    def __init__(
        self, messages: Sequence[Recorded], tools: Sequence[Recorded], source: Source, *, at: TurnPosition | None
    ) -> None:
        super().__init__(messages, source, at=at)
        self.tools = tools

    @property
    def tools_html(self) -> SafeString:
        """The definitions as JSON, with the findings of the scan marked."""
        shown = json.dumps(self.tools, indent=1, ensure_ascii=False)
        return marked(shown, scan_marks(self.tools, shown, TOOLS_PREFIX))


def history_of(sample: Sample, *, at: TurnPosition | None = None) -> History:
    """Return the sample's history, to be opened at `at`; it is empty for a sample without a duel."""
    found = PromptText.objects.filter(prompt__duels__sample=sample).select_related("session").first()
    urls = ("history-window", "history-turn", "history-find", "history-raw")
    history, tools = (found.history, found.tools) if found else ((), ())
    return History(history, tools, Source(sample.pk, "turn", *urls), at=at)
