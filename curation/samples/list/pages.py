"""The list of samples: the read of a page, its rows, and the URL of every link. A row is a template tag: a template
takes as long for the rows as for all else of the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from html import escape
from typing import Any, ClassVar

from django import template
from django.db import connections
from django.db.models import Q
from django.db.models.functions import Now
from django.http import QueryDict
from django.urls import reverse
from django.utils.safestring import SafeString

from curation.projects.access import Access
from curation.projects.models import Project, Scope
from curation.runs.models import Run
from curation.samples.blind import offered, record_unblinding_of, refuse_hidden, reviews_blind
from curation.samples.list.filters import SampleList
from curation.samples.list.search import newest_matches
from curation.samples.models import Sample, SampleQuerySet, SampleStatus
from curation.web.database.queries import Prepared
from curation.web.ids import IdList
from curation.web.lists.clauses import page_rows, read_page
from curation.web.lists.filters import named_list
from curation.web.lists.keyset import KeysetPage, decode_cursor, encode_cursor, in_order, page_of, paginate
from curation.web.lists.pages import chips, column, controls
from curation.web.problems import Problem
from curation.web.text.figures import NOTHING, badge, counted, number, percent, time
from curation.web.text.markup import with_signs

WINDOW = 1_000


def in_review(samples: Sequence[Sample]) -> dict[int, str]:
    """The reviewers with these samples open, in one query."""
    return dict(_in_review.all(ids=[sample.pk for sample in samples]))


# Every list of samples asks. Leases belong to a layer above.
_in_review = Prepared(
    lambda ids: Sample.objects.filter(pk__in=IdList(ids), leases__until__gt=Now()).values_list(
        "pk", "leases__reviewer__username"
    ),
    ids=list,
)


def sample_page(project: Project, params: SampleList, *, before: str | None = None) -> KeysetPage[Sample]:
    """One page with everything that a list shows, in one query, or a few more if a filter needs a lookup.

    `before` is a cursor: the rows before it, in reversed order.
    """
    rows = Sample.objects.of(project)
    clauses = params.clauses(rows)
    column = reversed_order(params.order()) if before else params.order()
    cursor = before or params.cursor
    if not (clauses or cursor or params.scored_by):
        page = page_of(_first_rows(column, params.limit).all(project=project.pk), sort=column, limit=params.limit)
    elif (window := _window(rows, params, column=column, cursor=cursor)) is not None:
        page = window
    elif params.scored_by is not None:  # the scores of a run are few of all
        chosen = _with_scores(page_rows(rows, clauses, sort=column), params)
        page = paginate(chosen, sort=column, cursor=cursor, limit=params.limit)
    else:
        page = read_page(rows, clauses, sort=column, cursor=cursor, limit=params.limit, columns=SampleQuerySet.for_list)
    return replace(page, total=params.apply(rows).count()) if params.count else page


@lru_cache(maxsize=64)
def _first_rows(column: str, limit: int) -> Prepared[Sample]:
    """The start of the list without a filter, where nearly every visit begins. Building this query takes as long as
    reading its rows."""
    return Prepared(
        lambda project: in_order(Sample.objects.filter(project=project).for_list(), column)[: limit + 1], project=int
    )


def _window(rows: SampleQuerySet, params: SampleList, *, column: str, cursor: str | None) -> KeysetPage[Sample] | None:
    """A page of a text filter ordered by id, read from the first matches only; None if they do not fill it."""
    if not params.text or column not in {"id", "-id"} or connections[rows.db].vendor != "sqlite":
        return None
    after = decode_cursor(cursor, column)[1] if cursor else None
    near = newest_matches(rows, params.text, down=column == "-id", after=after, most=WINDOW)
    rest = params.model_copy(update={"text": ""})
    page = paginate(_with_scores(rest.apply(near), params), sort=column, cursor=cursor, limit=params.limit)
    return page if page.next_cursor else None


def _with_scores(rows: SampleQuerySet, params: SampleList) -> SampleQuerySet:
    return rows.for_list() if params.scored_by is None else rows.for_list().as_scored_by(params.scored_by)


def reversed_order(column: str) -> str:
    return column.removeprefix("-") if column.startswith("-") else f"-{column}"


def review_steps(run: Run) -> list[tuple[str, str]]:
    """The next step after a run that made or scored samples: the queue of those that are pending, if there are any."""
    rows = Sample.objects.of(run.project).filter(Q(run=run) | Q(duel__scores__run=run), status=SampleStatus.PENDING)
    pending = rows.distinct().count()
    words = f"Review {counted(pending, 'sample')}"
    return [(words, f"{reverse('queue', args=[run.project.slug])}?run={run.pk}")] if pending else []


# (order, label, an order that equals it)
COLUMNS = (
    ("score", "Score", ""),
    ("created_at", "Created", "id"),
    ("priority", "Borderline first", ""),
    ("predicted", "Predicted", ""),
)


@named_list("samples", page="sample-list")
class SamplePageParams(SampleList):
    """The parameters of the page: the list's, and `before`, the cursor of a step back."""

    beside: ClassVar[frozenset[str]] = SampleList.beside | {"before"}

    before: str | None = None


@dataclass(frozen=True, slots=True)
class ListedSample:
    """A sample with its links. Resolving the URLs row by row took half of the page's time."""

    sample: Sample
    hidden: bool
    flags: tuple[str, ...]
    pk: str
    page_url: str
    panel_url: str
    in_review_by: str


def list_page(access: Access, given: QueryDict) -> dict[str, Any]:
    """The context of `samples/list.html` and `samples/_list.html`. A filter that is refused becomes `problem`; the form
    shows its fields as they were sent."""
    slug = access.project.slug
    url = reverse("sample-list", args=[slug])
    params, problem = SamplePageParams(), None
    rows: list[Sample] = []
    newer: dict[str, str] = {}
    older: dict[str, str] = {}
    try:
        params = SamplePageParams.from_query(given)
        refuse_hidden(access, params)
        rows, newer, older = _rows(access, params)
        record_unblinding_of(access, rows)
    except Problem as refused:
        if refused.code == "unknown_parameter":
            raise  # no field of the form could show it; the list is shown without it
        problem = refused
    shown = offered(access, params.status)
    flags = [(word, label) for word, label in params.choices["flags"] if word in shown.flags]
    return {
        "slug": slug,
        "list_url": url,
        "here_url": params.url(url, cursor=params.cursor, before=params.before),
        "api_path": params.url(f"/api/v1/projects/{slug}/samples"),
        "query": params.to_query(),
        "sort": params.sort if params.sort in shown.sorts else params.sorts[0],
        "controls": controls(
            {name: label for name, label in params.labels.items() if name not in shown.hidden},
            given if problem else QueryDict(params.to_query()),
            {**params.choices, "flags": flags},
        ),
        "chips": chips(url, params),
        "columns": {
            word: column(url, params, word, label, same_order=same)
            for word, label, same in COLUMNS
            if word in shown.sorts
        },
        "may_decide": access.may(Scope.REVIEW),
        "may_adjudicate": access.may(Scope.RUN),
        "rows": _linked(access, rows),
        "newer_url": params.url(url, **newer) if newer else "",
        "older_url": params.url(url, **older) if older else "",
        "problem": problem,
    }


def _rows(access: Access, params: SamplePageParams) -> tuple[list[Sample], dict[str, str], dict[str, str]]:
    """The rows of this page, and the parameters of the newer and of the older page, empty if there is none."""
    order = params.order()
    if params.before:
        back = sample_page(access.project, params, before=params.before)
        if back.next_cursor:
            rows = back.rows[::-1]
            return rows, {"before": _cursor_at(reversed_order(order), rows[0])}, {"cursor": _cursor_at(order, rows[-1])}
        # Less than a page is left before the cursor: show the first page.
        params = params.model_copy(update={"cursor": None})
    page = sample_page(access.project, params)
    newer = {"before": _cursor_at(reversed_order(order), page.rows[0])} if params.cursor and page.rows else {}
    return page.rows, newer, {"cursor": page.next_cursor} if page.next_cursor else {}


def _linked(access: Access, samples: list[Sample]) -> list[ListedSample]:
    """The rows with their URLs, made from those of id 0, and who else has them open."""
    slug = access.project.slug
    holders, me, blind = in_review(samples), access.user.get_username(), reviews_blind(access)
    page, panel = (reverse(name, args=[slug, 0]).split("/0/") for name in ("sample-page", "sample-panel"))
    return [
        ListedSample(
            sample,
            hidden := blind and sample.status == SampleStatus.PENDING,
            tuple(sample.shown_flags(hidden=hidden)),
            str(sample.pk),
            f"/{sample.pk}/".join(page),
            f"/{sample.pk}/".join(panel),
            "" if (holder := holders.get(sample.pk, "")) == me else holder,
        )
        for sample in samples
    ]


def _cursor_at(column: str, row: Sample) -> str:
    attribute = column.removeprefix("-")
    value = row.pk if attribute == "id" else getattr(row, attribute)
    return encode_cursor(column, value.isoformat() if isinstance(value, datetime) else value, row.pk)


register = template.Library()

HIDDEN = SafeString('<span class="muted">hidden</span>')
OPPONENTS = {
    "reference": SafeString(' <span class="muted">against the reference</span>'),
    "none": SafeString(' <span class="muted">single answer</span>'),
}


@register.simple_tag
def sample_row(row: ListedSample, *, may_adjudicate: bool) -> SafeString:
    """Return the table row of a sample. A hidden one has neither scores nor preview, and only the flags of `row`."""
    sample, hidden, pk = row.sample, row.hidden, row.pk
    score = NOTHING if hidden or sample.shown_score is None else number(sample.shown_score, 1)
    predicted = NOTHING if hidden or sample.predicted is None else percent(sample.predicted)
    preview = f"Sample {pk}, hidden until it is decided" if hidden else escape(sample.preview) or "(no preview)"
    opponent = OPPONENTS.get(getattr(sample, "opponent", None) or "", "")
    instance, repo, source = (escape(with_signs(name)) for name in (sample.instance_id, sample.repo, sample.source))
    return SafeString(f"""<tr data-row id="sample-{pk}">
  <td class="table__check"><input type="checkbox" name="ids" value="{pk}" aria-label="Select sample {pk}"></td>
  <td class="num">{pk}</td>
  <td class="num">{score}</td>
  <td class="num col-3">{predicted}</td>
  <td>{HIDDEN if hidden else _bucket(sample)}</td>
  <td class="col-2">{_status(row, may_adjudicate=may_adjudicate)}</td>
  <td class="table__main table__main--lines"><a class="table__lines" href="{row.page_url}" hx-get="{row.panel_url}" \
hx-target="#panel-body" hx-swap="innerHTML" data-panel-title="Sample {pk}" data-row-focus>{preview}</a>{opponent}</td>
  <td class="col-2">{_flags(row)}</td>
  <td class="mono col-2 table__side"><div class="truncate" title="{instance}">{instance}</div>\
{f'<div class="truncate muted" title="{repo}">{repo}</div>' if repo else ""}</td>
  <td class="mono col-4 table__side truncate" title="{source}">{source}</td>
  <td class="col-3">{"" if hidden else escape(sample.action_style)}</td>
  <td class="col-4">{escape(getattr(sample, "decided_by_name", None) or "")}</td>
  <td class="col-2 nowrap">{time(sample.created_at)}</td>
</tr>""")


def _bucket(sample: Sample) -> SafeString:
    return badge(sample.shown_bucket, tone=sample.bucket_tone) if sample.shown_bucket else NOTHING


def _status(row: ListedSample, *, may_adjudicate: bool) -> str:
    sample = row.sample
    badges = [badge(SampleStatus(sample.status).label, tone=sample.status_tone)]
    if may_adjudicate and sample.disputed:
        badges.append(badge("disputed", tone="attention"))
    if row.in_review_by:
        badges.append(badge(f"in review by {row.in_review_by}", tone="borderline"))
    return " ".join(badges)


def _flags(row: ListedSample) -> str:
    badges = "".join([f"{badge(name, tone='attention', solid=True)} " for name in row.flags])
    return badges + HIDDEN if row.hidden else badges
