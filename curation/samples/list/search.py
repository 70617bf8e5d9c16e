"""Full-text search over `SampleText`: SQLite by FTS5, PostgreSQL by a tsvector; both made by the search migration."""

import re
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql.compiler import SQLCompiler

if TYPE_CHECKING:
    from curation.samples.models import SampleQuerySet

SET_MOST = 50_000
SLOW_LOOK_UP = 0.01  # seconds to the first match; that of a word takes 0.1 ms
# Letters and digits of any script; all else, underscores too, parts words here as it does in both indexes.
_WORD = re.compile(r"[^\W_]+")
_CHUNK = re.compile(r'(-?)(?:"([^"]*)"?|([^\s"]+))')


@dataclass(frozen=True, slots=True)
class Term:
    """Words that stand one after the other; with `open_end` the last one may go on."""

    words: tuple[str, ...]
    open_end: bool

    def fts5(self) -> str:
        return f'"{" ".join(self.words)}"' + ("*" if self.open_end else "")

    def tsquery(self) -> str:
        return " <-> ".join(f"'{word}'" for word in self.words) + (":*" if self.open_end else "")


@dataclass(frozen=True, slots=True)
class TextQuery:
    """What a person typed, parsed: all of `wanted` and none of `unwanted`."""

    wanted: tuple[Term, ...]
    unwanted: tuple[Term, ...]

    def fts5(self) -> str:
        wanted = " AND ".join(term.fts5() for term in self.wanted)
        return " NOT ".join([f"({wanted})", *(term.fts5() for term in self.unwanted)])

    def tsquery(self) -> str:
        return " & ".join(
            [*(f"({term.tsquery()})" for term in self.wanted), *(f"!({term.tsquery()})" for term in self.unwanted)]
        )


def parse(text: str) -> TextQuery:
    """`"two words"` is a phrase, `-word` leaves out, everything else is a prefix and must be there.

    A chunk such as `src/app.py` is the phrase of its words, since punctuation is not indexed. Nothing that a person
    types is an error: only words reach the database, whatever stands between them.
    """
    wanted: list[Term] = []
    unwanted: list[Term] = []
    for minus, phrase, chunk in _CHUNK.findall(text):
        words = tuple(_WORD.findall(phrase or chunk))
        if words:
            # A single letter begins a tenth of all words: as a prefix it would read most of the index.
            term = Term(words, open_end=not phrase and len(words[-1]) > 1)
            (unwanted if minus else wanted).append(term)
    return TextQuery(tuple(wanted), tuple(unwanted))


class Reading(StrEnum):
    """How SQLite reads the matches of a text for one page of a list."""

    GATHER = "gather"
    """All matches first, then the order: for few matches, counts and exports."""
    SET = "set"
    """All matches into a set, then the list in its order until a page is full of what is in the set."""
    PROBE = "probe"
    """The list in its order, and the index asked about each row: for a word that stands in every tenth sample."""


def matching(rows: "SampleQuerySet", text: str, reading: Reading = Reading.GATHER) -> "SampleQuerySet":
    """The rows whose text matches; a text without any word matches nothing.

    PostgreSQL knows how frequent a word is and takes no notice of `reading`.
    """
    query = parse(text)
    if query.wanted:
        return rows.filter(TextMatch(query, reading))
    if not query.unwanted:
        return rows.none()
    for term in query.unwanted:  # FTS5 has no NOT without something before it
        rows = rows.exclude(TextMatch(TextQuery((term,), ()), reading))
    return rows


def best_reading(text: str, *, few: int, using: str) -> Reading:
    """Looks at no more than 50,000 matches of SQLite's index. A text that leaves out only is looked up row by row."""
    query = parse(text)
    if not query.wanted:
        return Reading.PROBE
    began = time.perf_counter()
    _matches(query, 1, using)
    slow = time.perf_counter() - began > SLOW_LOOK_UP
    count = _matches(query, SET_MOST + 1, using)
    if count <= few:
        return Reading.GATHER
    # A prefix of thousands of words is put together anew by every look-up: better once than for each row.
    return Reading.SET if slow or count <= SET_MOST else Reading.PROBE


def _matches(query: TextQuery, most: int, using: str) -> int:
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM (SELECT rowid FROM sample_search WHERE sample_search MATCH %s LIMIT %s)",
            [query.fts5(), most],
        )
        return int(cursor.fetchone()[0])


def newest_matches(rows: "SampleQuerySet", text: str, *, down: bool, after: int | None, most: int) -> "SampleQuerySet":
    """The rows among the first `most` matches of the database, in the order of ids, `down` or up, after an id.

    For SQLite: FTS5 yields its matches in this order and stops, so that a page of a frequent word is read at once.
    """
    query = parse(text)
    if not query.wanted:
        return rows.none()
    return rows.filter(TextWindow(query, down=down, after=after, most=most))


class TextMatch(models.Func):
    """A condition on the sample's id."""

    sqlite: ClassVar[dict[Reading, str]] = {
        Reading.GATHER: "{id} IN (SELECT rowid FROM sample_search WHERE sample_search MATCH %s)",
        # The unary plus keeps the planner from going through the set instead of through the list.
        Reading.SET: "+{id} IN (SELECT rowid FROM sample_search WHERE sample_search MATCH %s)",
        Reading.PROBE: "EXISTS (SELECT 1 FROM sample_search WHERE sample_search MATCH %s AND rowid = {id})",
    }
    postgres = "{id} IN (SELECT sample_id FROM samples_sampletext WHERE words @@ to_tsquery('simple', %s))"

    def __init__(self, query: TextQuery, reading: Reading) -> None:
        super().__init__(models.F("pk"), output_field=models.BooleanField())
        self.query = query
        self.reading = reading

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: object
    ) -> tuple[str, tuple[str, ...]]:
        return self._around_id(self.sqlite[self.reading], compiler), (self.query.fts5(),)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: object
    ) -> tuple[str, tuple[str, ...]]:
        return self._around_id(self.postgres, compiler), (self.query.tsquery(),)

    def _around_id(self, condition: str, compiler: SQLCompiler) -> str:
        column, _ = compiler.compile(self.source_expressions[0])
        return condition.replace("{id}", column)


class TextWindow(models.Func):
    """A condition on the sample's id: it is among the first matches in the order of ids. SQLite only."""

    window = (
        "{id} IN (SELECT rowid FROM sample_search WHERE sample_search MATCH %s AND rowid {beyond} %s "
        "ORDER BY rowid {way} LIMIT %s)"
    )
    output_field = models.BooleanField()

    def __init__(self, query: TextQuery, *, down: bool, after: int | None, most: int) -> None:
        super().__init__(models.F("pk"))
        self.query = query
        self.down = down
        self.after = after if after is not None else 2**62 if down else 0
        self.most = most

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: object
    ) -> tuple[str, tuple[str | int, ...]]:
        column, _params = compiler.compile(self.source_expressions[0])
        beyond, way = ("<", "DESC") if self.down else (">", "ASC")
        sql = self.window.replace("{id}", column).replace("{beyond}", beyond).replace("{way}", way)
        return sql, (self.query.fts5(), self.after, self.most)
