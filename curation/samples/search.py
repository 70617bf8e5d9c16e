"""Full-text search over `SampleText`: SQLite by FTS5, PostgreSQL by a tsvector; both made by the search migration."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import connections, models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.sql.compiler import SQLCompiler

if TYPE_CHECKING:
    from curation.samples.models import SampleQuerySet

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


def matching(rows: "SampleQuerySet", text: str, *, walk: bool = False) -> "SampleQuerySet":
    """The rows whose text matches; a text without any word matches nothing.

    By default SQLite gathers all matches first, which suits few matches, counts and exports. With `walk` it asks the
    index row by row in the order of the list, which suits a page of a word that stands in every other sample.
    PostgreSQL knows how frequent a word is and chooses by itself.
    """
    query = parse(text)
    if query.wanted:
        return rows.filter(TextMatch(query, walk=walk))
    if not query.unwanted:
        return rows.none()
    for term in query.unwanted:  # FTS5 has no NOT without something before it
        rows = rows.exclude(TextMatch(TextQuery((term,), ()), walk=walk))
    return rows


def has_few_matches(text: str, *, limit: int, using: str) -> bool:
    """Whether at most `limit` samples of the database match; reads no further. For SQLite's FTS5 only."""
    query = parse(text)
    if not query.wanted:
        return False
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM (SELECT rowid FROM sample_search WHERE sample_search MATCH %s LIMIT %s)",
            [query.fts5(), limit + 1],
        )
        return bool(cursor.fetchone()[0] <= limit)


class TextMatch(models.Func):
    """A condition on the sample's id."""

    gather = "{id} IN (SELECT rowid FROM sample_search WHERE sample_search MATCH %s)"
    probe = "EXISTS (SELECT 1 FROM sample_search WHERE sample_search MATCH %s AND rowid = {id})"
    postgres = "{id} IN (SELECT sample_id FROM samples_sampletext WHERE words @@ to_tsquery('simple', %s))"

    def __init__(self, query: TextQuery, *, walk: bool) -> None:
        super().__init__(models.F("pk"), output_field=models.BooleanField())
        self.query = query
        self.walk = walk

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: object
    ) -> tuple[str, tuple[str, ...]]:
        return self._around_id(self.probe if self.walk else self.gather, compiler), (self.query.fts5(),)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_: object
    ) -> tuple[str, tuple[str, ...]]:
        return self._around_id(self.postgres, compiler), (self.query.tsquery(),)

    def _around_id(self, condition: str, compiler: SQLCompiler) -> str:
        column, _ = compiler.compile(self.source_expressions[0])
        return condition.replace("{id}", column)
