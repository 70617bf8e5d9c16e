"""What sifting reads of samples and prompts: plain columns, since building model rows costs more than all the rest."""

import json
from collections.abc import Sequence
from typing import NamedTuple

import orjson
from django.db.models import TextField
from django.db.models.functions import Cast

from curation.duels.models import PromptText
from curation.exports.hygiene import Facts, Frozen
from curation.samples.models import Sample
from curation.web.among import Among


class Prompt(NamedTuple):
    """The history before the answer, and the row of its source, which groups turns that have no instance id."""

    history: object
    source: str
    row_offset: int

    @property
    def place(self) -> str:
        return f"{self.source}#{self.row_offset}"


def read_facts(chunk: Sequence[Frozen]) -> dict[int, Facts]:
    """Facts by sample id, with the frozen score, bucket and flags; samples that changed since are missing."""
    frozen = {row.sample_id: row for row in chunk}
    names = ("pk", "version", "status", "kind", "source", "repo", "instance_id", "leak_cleared", "run_id")
    facts = {}
    for values in Sample.objects.filter(pk__in=Among(list(frozen))).values_list(*names):
        row = frozen[values[0]]
        if row.version == values[1]:
            facts[row.sample_id] = Facts._make((*values, row.score, row.bucket, row.flags))
    return facts


def read_prompts(sample_ids: Sequence[int]) -> dict[int, Prompt]:
    """Prompts by sample id, of samples that come from a duel."""
    rows = PromptText.objects.filter(prompt__duels__sample_id__in=Among(sample_ids)).values_list(
        "prompt__duels__sample_id", Cast("history", TextField()), "prompt__source", "prompt__row_offset"
    )
    return {
        sample_id: Prompt(_parsed(history), source, offset)
        for sample_id, history, source, offset in rows
        if sample_id is not None
    }


def _parsed(history: str) -> object:
    try:
        return orjson.loads(history)
    except orjson.JSONDecodeError:
        # Half of a surrogate pair, which JSON can escape and UTF-8 cannot write: the row is left out with that reason.
        return json.loads(history)
