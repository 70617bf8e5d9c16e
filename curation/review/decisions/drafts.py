"""What a reviewer is typing, kept on the server: a closed browser or a restarted server loses nothing."""

from datetime import datetime

from curation.projects.access import Access
from curation.review.decisions.state import refuse_errors
from curation.review.models import Draft
from curation.samples.models import Sample
from curation.web.problems import NotFound
from curation.web.text.storable import text_errors

MAX_TEXT = 1_000_000


def save_draft(
    *, access: Access, sample_id: int, text: str | None = None, note: str | None = None, comment: str | None = None
) -> datetime | None:
    """Keep the given parts of the caller's draft and leave the others. Return when it was written, None where it is
    now empty and removed.

    No audit entry: a draft changes no data set.
    """
    given = {name: value for name, value in (("text", text), ("note", note), ("comment", comment)) if value is not None}
    refuse_errors([error for name, value in given.items() for error in text_errors(name, value, at_most=MAX_TEXT)])
    if not Sample.objects.of(access.project).filter(pk=sample_id).exists():
        raise NotFound(f"There is no sample {sample_id} in {access.project.slug}.")
    draft, _ = Draft.objects.update_or_create(sample_id=sample_id, reviewer=access.user, defaults=given)
    if not (draft.text or draft.note or draft.comment):
        draft.delete()
        return None
    return draft.updated_at


def draft_of(*, access: Access, sample_id: int) -> Draft | None:
    return Draft.objects.filter(sample_id=sample_id, reviewer=access.user).first()
