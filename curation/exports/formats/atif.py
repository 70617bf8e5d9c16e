"""Approved sessions as documents of ATIF (Agent Trajectory Interchange Format), one on each line: imported
documents leave as they came, and `extra.winnow` of the document and of its steps has the decisions of people."""

from collections.abc import Iterator

from curation.exports.formats.row import DataRow, Format, TrainingExample
from curation.exports.rows.skip_reasons import SkipReason


def _rows(example: TrainingExample) -> Iterator[DataRow | SkipReason]:
    if example.document is None:
        yield SkipReason.NO_SESSION
    else:
        yield DataRow(example.source, example.document, example.messages, [[]])


ATIF = Format(
    name="atif",
    about="an ATIF 1.8 document on each line; marks, labels and trims of the review are in `extra.winnow`",
    trained="nothing by itself: no trainer reads it as it is",
    pairs=False,
    rows=_rows,
    columns={},
    parquet=False,
    chat=False,
    documents=True,
)
FORMATS = (ATIF,)
