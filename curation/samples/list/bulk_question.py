"""What a person is asked before many samples change at once: how many, which, and what will happen."""

from dataclasses import dataclass

from django.http import QueryDict

from curation.projects.access import Access
from curation.samples.list.filters import SampleFilter
from curation.samples.list.pages import OWN_PARAMETERS
from curation.samples.models import Sample
from curation.web.problems import FieldError, Problem

# Above it the action is refused (`curation.review.bulk.decide`); counting stops there too.
MOST = 50_000
VERBS = {"approve": "Approve", "reject": "Reject", "queue": "Send to the queue"}
TONES = {"approve": "primary", "reject": "bad", "queue": "primary"}
AFTERWARDS = {
    "approve": "They count as decided by you and exports may take them.",
    "reject": "They count as decided by you and no export takes them.",
    "queue": "They become pending again and reviewers will be asked for them.",
}


@dataclass(frozen=True, slots=True)
class BulkQuestion:
    """The context of `samples/_bulk_confirm.html`; its form posts `action, count` and `ids`, or `all=1` and `query`."""

    slug: str
    action: str
    verb: str
    tone: str
    afterwards: str
    count: int
    ids: tuple[str, ...]
    query: str
    too_many: bool


def bulk_question(access: Access, given: QueryDict) -> BulkQuestion:
    """Counts the selection (`ids`) or, with `all=1`, everything that matches the filter in the same query."""
    action = given.get("action", "")
    if action not in VERBS:
        raise Problem(f"There is no action {action!r}.", errors=[FieldError("action", "approve, reject or queue")])
    rows = Sample.objects.of(access.project)
    ids: tuple[str, ...] = ()
    query = ""
    if given.get("all") == "1":
        wanted = SampleFilter.from_query(given, besides={"action", "all", "ids", *OWN_PARAMETERS})
        query = wanted.to_query()
        count = wanted.apply(rows).order_by()[: MOST + 1].count()
    else:
        asked = [int(pk) for pk in given.getlist("ids")[:500] if pk.isascii() and pk.isdigit() and len(pk) < 19]
        ids = tuple(str(pk) for pk in rows.filter(pk__in=asked).order_by("id").values_list("pk", flat=True))
        count = len(ids)
    return BulkQuestion(
        slug=access.project.slug,
        action=action,
        verb=VERBS[action],
        tone=TONES[action],
        afterwards=AFTERWARDS[action],
        count=count,
        ids=ids,
        query=query,
        too_many=count > MOST,
    )
