"""Read the histories of many prompts as plain columns."""

from collections.abc import Sequence
from typing import NamedTuple, cast

from django.db.models import TextField
from django.db.models.functions import Cast

from curation.duels.models import Session
from curation.samples.scans import text_sha256
from curation.web.database.prepared import Prepared
from curation.web.ids import IdList
from curation.web.text.storable import column_text, read_column
from judging.messages import Message


class SharedText(NamedTuple):
    """The messages of a session, its tools as JSON, and the hash of both as they are stored."""

    messages: Sequence[Message]
    tools: str
    sha256: str

    @classmethod
    def read(cls, messages: str, tools: str) -> "SharedText":
        return cls(cast(list[Message], read_column(messages)), tools, text_sha256(f"{messages}\n{tools}"))

    def prompt_sha256(self, at: int) -> str:
        """Return what tells whether a prompt at this position is still the same. A session is hashed once for all of
        its prompts."""
        return text_sha256(f"{self.sha256} {at}")


class Sessions:
    """The sessions of prompts that are read in chunks. A session is read once while its prompts follow each other."""

    def __init__(self) -> None:
        self._texts: dict[int, SharedText] = {}

    def read(self, ids: Sequence[int]) -> dict[int, SharedText]:
        """Return the sessions of a chunk, and forget those of earlier chunks."""
        self._texts = {pk: self._texts[pk] for pk in ids if pk in self._texts}
        missing = list({*ids}.difference(self._texts))
        of_trajectories = []
        for pk, messages, tools in _texts_of.all(ids=missing):
            if messages is None:
                of_trajectories.append(pk)
            else:
                self._texts[pk] = SharedText.read(messages, tools)
        if of_trajectories:  # making a query costs more than reading a row
            for row in Session.objects.filter(pk__in=of_trajectories).select_related("trajectory__text"):
                self._texts[row.pk] = SharedText.read(column_text(row.all_messages), column_text(row.tools))
        return self._texts


COLUMNS = ("messages", "tools")
_COLUMNS = [Cast(name, TextField()) for name in COLUMNS]
# Every 50 rows of an export make this query.
_texts_of = Prepared(lambda ids: Session.objects.filter(pk__in=IdList(ids)).values_list("pk", *_COLUMNS), ids=list)
