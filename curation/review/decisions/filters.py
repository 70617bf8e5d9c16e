from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from django.db.models import F, Q
from pydantic import Field

from curation.projects.access import Access
from curation.review.decisions.opinions import decisions_shown_to, look_at_opinions
from curation.review.models import Action, Decision
from curation.samples.blind import reviews_blind
from curation.samples.models import SampleStatus
from curation.web.lists.filters import Moment, Words, ids_of, one_of
from curation.web.lists.keyset import KeysetPage
from curation.web.lists.params import ListParams


class DecisionList(ListParams):
    """Everybody's decisions. Someone who reviews blind gets their own, and all those on samples that are decided. Those
    that wait for others are listed for curators and for their authors."""

    sorts: ClassVar[Sequence[str]] = ("-id", "id")
    lookups: ClassVar[Mapping[str, str]] = {
        "action": "action",
        "sample": "sample_id",
        "reviewer": "reviewer__username",
        "guarantee": "guarantee_id",
        "created_after": "created_at__gte",
        "created_before": "created_at__lt",
    }

    action: Annotated[Words, one_of(Action.values)] = ()
    sample: Annotated[Words, ids_of("sample")] = ()
    reviewer: Words = Field(default=(), description="Usernames.")
    guarantee: Annotated[Words, ids_of("guarantee")] = Field(
        default=(), description="Ids of guarantees: their approvals, and the undoing of these."
    )
    waits: bool | None = Field(default=None, description="Whether it waits for the decisions of others.")
    undone: bool | None = Field(default=None, description="Whether somebody has undone it.")
    created_after: Moment | None = Field(default=None, description="From this moment on.")
    created_before: Moment | None = Field(default=None, description="Before this moment.")

    def rows(self, access: Access) -> KeysetPage[Decision]:
        rows = self.narrow(Decision.objects.filter(sample__project=access.project))
        if self.undone is not None:
            rows = rows.filter(undone_by__isnull=not self.undone)
        if self.waits is not None:
            waiting = Q(settles=False, undone_by=None, round=F("sample__round"))
            rows = rows.filter(waiting if self.waits else ~waiting)
        if reviews_blind(access):
            rows = rows.filter(Q(reviewer=access.user) | ~Q(sample__status=SampleStatus.PENDING))
        page = self.page(
            rows.filter(decisions_shown_to(access)).select_related("reviewer", "sample", "guarantee__audit")
        )
        look_at_opinions(access, page.rows)
        return page
