from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from django.db import connections
from django.db.models import Q
from django.db.models.functions import Now
from django.urls import reverse

from curation.projects.models import Project
from curation.runs.models import Run
from curation.samples.list.filters import SampleList
from curation.samples.list.search import newest_matches
from curation.samples.models import Sample, SampleQuerySet, SampleStatus
from curation.web.database.prepared import Prepared
from curation.web.ids import IdList
from curation.web.lists.clauses import page_rows, read_page
from curation.web.lists.keyset import KeysetPage, decode_cursor, in_order, page_of, paginate
from curation.web.text.figures import counted

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
