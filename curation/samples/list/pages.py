"""What the samples page shows: the rows, and every link of it as a URL."""

from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote, urlencode

from django.http import QueryDict
from django.urls import reverse

from curation.projects.access import Access
from curation.projects.models import Scope
from curation.samples.list.filters import SCALARS, SampleFilter
from curation.samples.list.queries import SORTS, reversed_order, sample_page
from curation.samples.models import Bucket, Flag, Kind, Sample, SavedView, Status
from curation.web.lists.keyset import encode_cursor
from curation.web.problems import FieldError, Problem

PAGE_ROWS = 50
OWN_PARAMETERS = frozenset({"sort", "cursor", "before"})
DEFAULT_SORT = next(iter(SORTS))
WORDS = {
    "bucket": Bucket.values,
    "status": Status.values,
    "flags": [flag.label for flag in Flag],
    "kind": Kind.values,
}
LABELS = {
    "text": "Text",
    "bucket": "Bucket",
    "status": "Status",
    "flags": "Flags",
    "kind": "Kind",
    "score_min": "Score from",
    "score_max": "Score to",
    "repo": "Repository",
    "source": "Source",
    "instance_id": "Instance",
    "model": "Model",
    "action_style": "Action style",
    "reviewer": "Reviewer",
    "run": "Run",
    "axes": "Axes",
    "created_after": "Made from",
    "created_before": "Made before",
}


@dataclass(frozen=True, slots=True)
class Control:
    """A field of the filter bar. `more` are the further values of a repeated parameter, which it must not lose."""

    name: str
    label: str
    value: str
    options: tuple[str, ...] = ()
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chip:
    """One condition in force, and the list without it."""

    label: str
    value: str
    without_url: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column that the list can be ordered by; `aria_sort` is empty where it is not."""

    label: str
    url: str
    aria_sort: str = ""


@dataclass(frozen=True, slots=True)
class ViewLink:
    name: str
    url: str
    delete_url: str
    current: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A sample with its links: made here, since resolving URLs and formatting ids row by row took half of the page."""

    sample: Sample
    pk: str
    page_url: str
    panel_url: str


@dataclass(frozen=True, slots=True)
class ListPage:
    """The context of `samples/list.html` and `samples/_list.html`."""

    slug: str
    list_url: str
    here_url: str
    api_path: str
    query: str
    sort: str
    controls: dict[str, Control]
    chips: tuple[Chip, ...]
    columns: dict[str, Column]
    views: tuple[ViewLink, ...]
    may_decide: bool
    rows: list[Row] = field(default_factory=list)
    newer_url: str = ""
    older_url: str = ""
    problem: Problem | None = None


def list_page(access: Access, given: QueryDict) -> ListPage:
    """The page of a URL. A filter that is not understood becomes `problem`, with the fields as they were sent."""
    slug = access.project.slug
    url = reverse("sample-list", args=[slug])
    sort = given.get("sort") or DEFAULT_SORT
    wanted, problem = SampleFilter(), None
    rows: list[Sample] = []
    newer = older = ""
    try:
        wanted = SampleFilter.from_query(given, besides=OWN_PARAMETERS)
        if sort not in SORTS:
            raise Problem(f"The list has no order {sort!r}.", errors=[FieldError("sort", "unknown sort order")])
        rows, newer, older = _rows(access, wanted, sort, given)
    except Problem as refused:
        problem = refused
    query = wanted.to_query()
    state = _joined(query, sort)
    return ListPage(
        slug=slug,
        list_url=url,
        here_url=_link(url, state, urlencode([(k, given[k]) for k in ("cursor", "before") if given.get(k)])),
        api_path=_link(f"/api/v1/projects/{slug}/samples", state),
        query=query,
        sort=sort,
        controls=_controls(wanted, given if problem else None),
        chips=_chips(url, wanted, sort),
        columns=_columns(url, query, sort),
        views=_views(access, state),
        may_decide=access.may(Scope.REVIEW),
        rows=_linked(slug, rows),
        newer_url=_link(url, state, newer) if newer else "",
        older_url=_link(url, state, older) if older else "",
        problem=problem,
    )


def _rows(access: Access, wanted: SampleFilter, sort: str, given: QueryDict) -> tuple[list[Sample], str, str]:
    """The rows of this page, and the parameters of the newer and the older one (empty where there is none)."""
    column = SORTS[sort]
    cursor, before = given.get("cursor") or None, given.get("before") or None
    if before:
        back = sample_page(access.project, wanted, sort=sort, cursor=before, limit=PAGE_ROWS, backwards=True)
        if back.next_cursor:
            rows = back.rows[::-1]
            return rows, _edge("before", reversed_order(column), rows[0]), _edge("cursor", column, rows[-1])
        cursor = None  # fewer rows than a page are left there: it is the first page
    page = sample_page(access.project, wanted, sort=sort, cursor=cursor, limit=PAGE_ROWS)
    newer = _edge("before", reversed_order(column), page.rows[0]) if cursor and page.rows else ""
    return page.rows, newer, f"cursor={quote(page.next_cursor)}" if page.next_cursor else ""


def _linked(slug: str, samples: list[Sample]) -> list[Row]:
    """`0` is no sample's id, so that its URLs are patterns for all."""
    page, panel = (reverse(name, args=[slug, 0]).split("/0/") for name in ("sample-page", "sample-panel"))
    return [
        Row(sample, str(sample.pk), f"/{sample.pk}/".join(page), f"/{sample.pk}/".join(panel)) for sample in samples
    ]


def _edge(name: str, column: str, row: Sample) -> str:
    attribute = column.removeprefix("-")
    value = row.pk if attribute == "id" else getattr(row, attribute)
    return f"{name}={encode_cursor(column, value.isoformat() if isinstance(value, datetime) else value, row.pk)}"


def _joined(query: str, sort: str) -> str:
    return "&".join(part for part in (query, "" if sort == DEFAULT_SORT else urlencode({"sort": sort})) if part)


def _link(url: str, *parts: str) -> str:
    query = "&".join(part for part in parts if part)
    return f"{url}?{query}" if query else url


def _controls(wanted: SampleFilter, as_sent: QueryDict | None) -> dict[str, Control]:
    sent = as_sent if as_sent is not None else QueryDict(wanted.to_query())
    controls = {}
    for name, label in LABELS.items():
        value, *more = sent.getlist(name) or [""]
        options = WORDS.get(name, [])
        shown = (*options, value) if options and value and value not in options else tuple(options)
        controls[name] = Control(name, label, value, shown, tuple(more))
    return controls


def _chips(url: str, wanted: SampleFilter, sort: str) -> tuple[Chip, ...]:
    pairs = [(name, value) for name, values in QueryDict(wanted.to_query()).lists() for value in values]
    return tuple(
        Chip(
            LABELS[name].lower(),
            value if name in SCALARS else value.replace("\\,", "\0").replace(",", " or ").replace("\0", ","),
            _link(url, _joined(urlencode(pairs[:n] + pairs[n + 1 :]), sort)),
        )
        for n, (name, value) in enumerate(pairs)
    )


def _columns(url: str, query: str, sort: str) -> dict[str, Column]:
    """A second click on a column turns its order; the queue's order has one direction."""
    ordered = {"score": "Score", "created_at": "Made", "priority": "Borderline first"}
    columns = {}
    for name, label in ordered.items():
        current = sort.removeprefix("-") == name or (name == "created_at" and sort.removeprefix("-") == "id")
        down = sort.startswith("-")
        following = name if name == "priority" or (current and down) else f"-{name}"
        aria = ("descending" if down else "ascending") if current else ""
        columns[name] = Column(label, _link(url, _joined(query, following)), aria)
    return columns


def _views(access: Access, state: str) -> tuple[ViewLink, ...]:
    url = reverse("sample-list", args=[access.project.slug])
    return tuple(
        ViewLink(
            view.name,
            _link(url, view.query),
            reverse("saved-view-delete", args=[access.project.slug, view.pk]),
            view.query == state,
        )
        for view in SavedView.objects.filter(project=access.project)[:100]
    )
