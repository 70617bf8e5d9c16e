from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from django.db import transaction
from django.urls import reverse
from pydantic import Field

from curation.notifications.models import NotificationKind
from curation.notifications.notify import notify, notify_mentioned
from curation.projects.access import Access
from curation.review.decisions.decide import MAX_COMMENT
from curation.review.decisions.state import refuse_errors
from curation.review.models import Action, Decision, DecisionQuerySet, FlagResolution
from curation.review.queue.lease import lock_sample
from curation.web.lists.filters import Words, ids_of
from curation.web.lists.keyset import KeysetPage
from curation.web.lists.params import ListParams, named_list
from curation.web.problems import Conflict, FieldError
from curation.web.text.storable import text_errors


@named_list("flags", page="flag-list")
class FlagList(ListParams):
    """Flags that nobody has undone, the newest first."""

    lookups: ClassVar[Mapping[str, str]] = {"sample": "sample_id", "reviewer": "reviewer__username"}

    state: Literal["open", "resolved", "all"] = "open"
    sample: Annotated[Words, ids_of("sample")] = ()
    reviewer: Words = Field(default=(), description="Usernames of those who flagged.")

    def rows(self, access: Access) -> KeysetPage[Decision]:
        rows = self.narrow(flags_of(access))
        if self.state != "all":
            rows = rows.filter(resolution__isnull=self.state == "open")
        return self.page(rows.select_related("reviewer", "sample", "resolution__resolved_by"))


def flags_of(access: Access) -> DecisionQuerySet:
    """Return the project's flags that are not undone. They are few, so they are found by their own index."""
    flags: DecisionQuerySet = Decision.objects.of(access.project).filter(action=Action.FLAG).not_undone()
    return flags


def resolve_flags(*, access: Access, sample_id: int, note: str) -> list[Decision]:
    """Resolve every open flag of the sample with one note, and tell those who flagged it. The sample's status stays.

    Raises `Invalid` for an empty note, `Conflict` where no flag is open.
    """
    note = note.strip()
    errors = text_errors("note", note, at_most=MAX_COMMENT)
    refuse_errors(errors or ([] if note else [FieldError("note", "is empty; say how the flag was resolved")]))
    with transaction.atomic():
        sample = lock_sample(access.project, sample_id)
        flags = list(flags_of(access).filter(sample=sample, resolution=None).select_related("reviewer").order_by("id"))
        if not flags:
            raise Conflict(f"Sample {sample.pk} has no open flag.", code="no_open_flag")
        for flag in flags:
            FlagResolution.objects.create(flag=flag, resolved_by=access.user, note=note)
        access.record("sample.resolve_flags", str(sample.pk), {"flags": [flag.pk for flag in flags]})
        about, link = f"sample {sample.pk}", reverse("sample-page", args=[access.project.slug, sample.pk])
        flagged = {flag.reviewer_id for flag in flags}
        kind, what = NotificationKind.FLAG_RESOLVED, "resolved your flag on"
        notify(access=access, user_ids=flagged, kind=kind, what=what, about=about, link=link)
        notify_mentioned(access=access, text=note, about=about, link=link)
    return flags
