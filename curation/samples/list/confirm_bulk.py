"""The question before many samples change at once: their number, the selection, and the change."""

from dataclasses import dataclass

from django.http import QueryDict

from curation.projects.access import Access
from curation.samples.blind import refuse_hidden
from curation.samples.list.pages import SamplePageParams
from curation.samples.models import Sample
from curation.web.ids import id_number
from curation.web.problems import FieldError, Problem

# A larger action is refused (`curation.review.bulk.decide`); counting stops there too.
MAX_MATCHING = 50_000
VERBS = {"approve": "Approve", "reject": "Reject", "queue": "Send to the queue"}
TONES = {"approve": "primary", "reject": "bad", "queue": "primary"}
AFTERWARDS = {
    "approve": "You are recorded as their reviewer. Exports can include them.",
    "reject": "You are recorded as their reviewer. Exports do not include them.",
    "queue": "The samples are pending again, and reviewers get them from the queue.",
}


@dataclass(frozen=True, slots=True)
class BulkConfirmation:
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


def confirm_bulk(access: Access, given: QueryDict) -> BulkConfirmation:
    """Count the selection (`ids`) or, with `all=1`, all samples that match the filter in the same query."""
    action = given.get("action", "")
    if action not in VERBS:
        raise Problem(f"There is no action {action!r}.", errors=[FieldError("action", "approve, reject or queue")])
    rows = Sample.objects.of(access.project)
    ids: tuple[str, ...] = ()
    query = ""
    if given.get("all") == "1":
        wanted = SamplePageParams.from_query(given, ignore={"action", "all", "ids"})
        refuse_hidden(access, wanted)
        query = wanted.to_query()
        count = wanted.apply(rows).order_by()[: MAX_MATCHING + 1].count()
    else:
        asked = [id_number(pk) for pk in given.getlist("ids")[:500]]
        found = rows.filter(pk__in=[pk for pk in asked if pk is not None])
        ids = tuple(str(pk) for pk in found.order_by("id").values_list("pk", flat=True))
        count = len(ids)
    return BulkConfirmation(
        slug=access.project.slug,
        action=action,
        verb=VERBS[action],
        tone=TONES[action],
        afterwards=AFTERWARDS[action],
        count=count,
        ids=ids,
        query=query,
        too_many=count > MAX_MATCHING,
    )
