"""One page of the samples list, for the page and for REST."""

import re
from dataclasses import replace
from urllib.parse import quote, urlsplit

from django.db import connections

from curation.projects.models import Project
from curation.samples.list.conditions import for_page
from curation.samples.list.filters import SampleFilter
from curation.samples.list.search import newest_matches
from curation.samples.models import Sample, SampleQuerySet
from curation.web.lists.keyset import Page, decode_cursor, paginate

# What a URL says, and the column that an index keeps in that order. The first is the default.
SORTS = {
    "-id": "-id",
    "id": "id",
    "-score": "-score_key",
    "score": "score_key",
    "-created_at": "-created_at",
    "created_at": "created_at",
    "priority": "priority",
}
WINDOW = 1_000
_HUGGING_FACE = re.compile(
    r"hf://(?P<kind>datasets|models|spaces)/(?P<name>[^/@]+/[^/@]+)(@(?P<at>[^/]+))?(/(?P<path>.+))?"
)


def sample_page(
    project: Project,
    wanted: SampleFilter,
    *,
    sort: str,
    cursor: str | None,
    limit: int,
    count: bool = False,
    backwards: bool = False,
) -> Page[Sample]:
    """One page with all that a list shows, in one query (a few more where a filter must be looked up first).

    `backwards` reads in the opposite order, as `curation.samples.list.pages` does for the page before this one.
    """
    rows = Sample.objects.of(project)
    clauses = wanted.clauses(rows)
    column = SORTS[sort]
    if column.endswith("id") and (wanted.created_after or wanted.created_before):
        # Both are the order of making; only this one's index can begin at a moment.
        column = column.replace("id", "created_at")
    if backwards:
        column = reversed_order(column)
    page = _window(rows, wanted, column=column, cursor=cursor, limit=limit)
    if page is None:
        chosen = for_page(rows, clauses, sort=column).for_list()
        page = paginate(chosen, sort=column, cursor=cursor, limit=limit)
    return replace(page, total=wanted.apply(rows).count()) if count else page


def _window(
    rows: SampleQuerySet, wanted: SampleFilter, *, column: str, cursor: str | None, limit: int
) -> Page[Sample] | None:
    """A page of a text filter in the order of ids, from the first matches alone; None where they do not fill it."""
    if not wanted.text or column not in {"id", "-id"} or connections[rows.db].vendor != "sqlite":
        return None
    after = decode_cursor(cursor, column)[1] if cursor else None
    near = newest_matches(rows, wanted.text, down=column == "-id", after=after, most=WINDOW)
    rest = wanted.model_copy(update={"text": ""})
    page = paginate(rest.apply(near).for_list(), sort=column, cursor=cursor, limit=limit)
    return page if page.next_cursor else None


def reversed_order(column: str) -> str:
    return column.removeprefix("-") if column.startswith("-") else f"-{column}"


def source_url(source: str, row: int | None) -> str | None:
    """Where the sample's row can be read by everyone: a public `hf://` or `https://` source, with the row's number.

    None for uploads and other stores, and for an address that carries credentials or a signature.
    """
    if row is None:
        return None
    if named := _HUGGING_FACE.fullmatch(source):
        prefix = "" if named["kind"] == "models" else f"{named['kind']}/"
        path = f"/blob/{quote(named['at'] or 'main', safe='')}/{quote(named['path'])}" if named["path"] else ""
        return f"https://huggingface.co/{prefix}{quote(named['name'])}{path}#row={row}"
    try:
        parts = urlsplit(source)
    except ValueError:
        return None
    if parts.scheme != "https" or not parts.hostname or "@" in parts.netloc or parts.query:
        return None
    return f"{source.partition('#')[0]}#row={row}"
