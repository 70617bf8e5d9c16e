"""Training rows that a split is held against, whatever they come from."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.files.storage import default_storage

from curation.evaluations.models import Split
from curation.evaluations.splits.rows import ReadRow, read_row
from curation.exports.models import Export
from curation.imports.sources.open import open_stored
from curation.imports.sources.rows import BadRow, Position, Reader, RowRefused, SourceError
from judging.messages import content_of

CHUNK = 500
TRAIN = "train"


def rows_of_split(split: Split) -> Iterator[ReadRow]:
    """All rows of a split with their texts, in file order, a few hundred at a time."""
    for row in split.rows.select_related("text").order_by("number").iterator(CHUNK):
        yield ReadRow(row.text.messages, row.text.expected, row.task_id, row.tier, row.source)


def training_files(export: Export) -> list[str]:
    """Storage keys of the export's data files of its `train` split."""
    return [file.stored_as for file in export.files.all() if file.format and file.split == TRAIN]


@contextmanager
def stored_rows(key: str) -> Iterator[Iterator[ReadRow]]:
    """The rows of a stored file that hold a prompt and an answer; others are passed over: they train nothing.

    Raises `SourceError` where the file cannot be read at all.
    """
    if not default_storage.exists(key):
        raise SourceError("The file is no longer in storage.")
    with open_stored(key) as opened:
        yield _rows(opened.reader)


def _rows(reader: Reader) -> Iterator[ReadRow]:
    for row in reader.rows(Position()):
        if isinstance(row, BadRow):
            continue
        try:
            yield read_row(_as_messages(row.value))
        except RowRefused:
            continue


def _as_messages(value: dict[str, object]) -> dict[str, object]:
    """A preference row trains its chosen answer on the prompt."""
    prompt, chosen = value.get("prompt"), value.get("chosen")
    if "messages" in value or not isinstance(prompt, list) or not isinstance(chosen, list) or not chosen:
        return value
    last = chosen[-1]
    if isinstance(last, dict) and content_of(last):
        return {**value, "messages": [*prompt, *chosen]}
    return value
