"""One page of the samples list, for the page and for REST."""

import re
from dataclasses import replace
from urllib.parse import quote, urlsplit

from curation.projects.models import Project
from curation.samples.conditions import for_page
from curation.samples.filters import SampleFilter
from curation.samples.models import Sample
from curation.web.keyset import Page, paginate

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
_HUGGING_FACE = re.compile(
    r"hf://(?P<kind>datasets|models|spaces)/(?P<name>[^/@]+/[^/@]+)(@(?P<at>[^/]+))?(/(?P<path>.+))?"
)


def sample_page(
    project: Project, wanted: SampleFilter, *, sort: str, cursor: str | None, limit: int, count: bool = False
) -> Page[Sample]:
    """One page with all that a list shows, in one query (a few more where a filter must be looked up first)."""
    rows = Sample.objects.of(project)
    clauses = wanted.clauses(rows)
    page = paginate(for_page(rows, clauses, sort=sort).for_list(), sort=SORTS[sort], cursor=cursor, limit=limit)
    return replace(page, total=wanted.apply(rows).count()) if count else page


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
