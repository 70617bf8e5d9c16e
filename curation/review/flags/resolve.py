from django.db import transaction
from django.urls import reverse

from curation.notifications.models import NotificationKind
from curation.notifications.notify import notify, notify_mentioned
from curation.projects.access import Access
from curation.review.decisions.decide import MAX_COMMENT
from curation.review.decisions.state import refuse_errors
from curation.review.flags.filters import flags_of
from curation.review.models import Decision, FlagResolution
from curation.review.queue.lease import lock_sample
from curation.web.problems import Conflict, FieldError
from curation.web.text.storable import text_errors


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
