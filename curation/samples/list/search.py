"""Full-text search over `SampleText`, with FTS5 on SQLite and a tsvector on PostgreSQL."""

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
SLOW_LOOKUP = 0.01  # seconds to the first match; that of a word takes 0.1 ms
# A text that so many of the newest samples match fills a page from the list's order within 2,500 rows.
NEWEST, OFTEN = 500, 10
# Letters and digits of any script; everything else, underscores too, separates words, as in both indexes.
_WORD = re.compile(r"[^\W_]+")
_CHUNK = re.compile(r'(-?)(?:"([^"]*)"?|([^\s"]+))')


@dataclass(frozen=True, slots=True)
class Term:
    """Consecutive words; with `open_end` the last one is a prefix."""

    words: tuple[str, ...]
    open_end: bool

    def fts5(self) -> str:
        return f'"{" ".join(self.words)}"' + ("*" if self.open_end else "")

    def tsquery(self) -> str:
        return " <-> ".join(f"'{word}'" for word in self.words) + (":*" if self.open_end else "")


@dataclass(frozen=True, slots=True)
class TextQuery:
    """A parsed search: all of `wanted` and none of `unwanted`."""

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
    """Parse a search: `"two words"` is a phrase, `-word` excludes, everything else is a required prefix.

    A chunk such as `src/app.py` is the phrase of its words, since punctuation is not indexed. No input is an error:
    only words reach the database.
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


class MatchReading(StrEnum):
    """How the matches of a text are found for one page of a list. PostgreSQL tells only `ALL` from the others."""

    ALL = "all"
    """All matches, then sorted: for few matches, counts and exports."""
    SET = "set"
    """All matches into a set, then the list in its order until a page is full."""
    PROBE = "probe"
    """The list in its order, with a lookup in the index for each row: for a word in every tenth sample."""


def matching(rows: "SampleQuerySet", text: str, reading: MatchReading = MatchReading.ALL) -> "SampleQuerySet":
    """The rows whose text matches; a search without words matches nothing. PostgreSQL ignores `reading`."""
    query = parse(text)
    if query.wanted:
        return rows.filter(TextMatch(query, reading))
    if not query.unwanted:
        return rows.none()
    for term in query.unwanted:  # FTS5 needs a term before NOT
        rows = rows.exclude(TextMatch(TextQuery((term,), ()), reading))
    return rows


def best_reading(text: str, *, few: int, using: str) -> MatchReading:
    """Choose by the number of matches, counted up to 50,000. A search that only excludes is looked up row by row.

    PostgreSQL counts the matches among the newest samples, because its index finds all matches before it counts one.
    """
    query = parse(text)
    if not query.wanted:
        return MatchReading.PROBE
    if connections[using].vendor == "postgresql":
        return MatchReading.SET if _newest_that_match(query, using) >= OFTEN else MatchReading.ALL
    began = time.perf_counter()
    _matches(query, 1, using)
    slow = time.perf_counter() - began > SLOW_LOOKUP
    count = _matches(query, SET_MOST + 1, using)
    if count <= few:
        return MatchReading.ALL
    # Each lookup of a short prefix merges thousands of words again, so do it once.
    return MatchReading.SET if slow or count <= SET_MOST else MatchReading.PROBE


def _matches(query: TextQuery, most: int, using: str) -> int:
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM (SELECT rowid FROM sample_search WHERE sample_search MATCH %s LIMIT %s)",
            [query.fts5(), most],
        )
        return int(cursor.fetchone()[0])


def _newest_that_match(query: TextQuery, using: str) -> int:
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM (SELECT words FROM samples_sampletext ORDER BY sample_id DESC LIMIT %s) AS newest "
            "WHERE words @@ to_tsquery('simple', %s)",
            [NEWEST, query.tsquery()],
        )
        return int(cursor.fetchone()[0])


def newest_matches(rows: "SampleQuerySet", text: str, *, down: bool, after: int | None, most: int) -> "SampleQuerySet":
    """The rows among the first `most` matches after an id, by descending id if `down`.

    For SQLite: FTS5 returns matches in this order and stops, so a page of a frequent word is read fast.
    """
    query = parse(text)
    if not query.wanted:
        return rows.none()
    return rows.filter(TextWindow(query, down=down, after=after, most=most))


class TextMatch(models.Func):
    """A condition on the sample's id."""

    sqlite: ClassVar[dict[MatchReading, str]] = {
        MatchReading.ALL: "{id} IN (SELECT rowid FROM sample_search WHERE sample_search MATCH %s)",
        # The unary plus makes the planner scan the list and not the set.
        MatchReading.SET: "+{id} IN (SELECT rowid FROM sample_search WHERE sample_search MATCH %s)",
        MatchReading.PROBE: "EXISTS (SELECT 1 FROM sample_search WHERE sample_search MATCH %s AND rowid = {id})",
    }
    postgres = "{id} IN (SELECT sample_id FROM samples_sampletext WHERE words @@ to_tsquery('simple', %s))"

    def __init__(self, query: TextQuery, reading: MatchReading) -> None:
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
    """A condition on the sample's id: it is among the first matches by id. SQLite only."""

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
