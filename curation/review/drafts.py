"""What a reviewer is typing, kept on the server, so that a closed browser or a restarted server loses nothing."""

from dataclasses import dataclass
from datetime import datetime

from curation.projects.access import Access
from curation.review.models import Draft
from curation.samples.models import Sample
from curation.web.problems import FieldError, Invalid, NotFound

MAX_TEXT = 1_000_000


@dataclass(frozen=True, slots=True)
class Saved:
    """When the draft was written, None where it was empty and therefore thrown away."""

    at: datetime | None


def save_draft(
    *, access: Access, sample_id: int, text: str | None = None, note: str | None = None, comment: str | None = None
) -> Saved:
    """Keeps the given parts of the caller's draft of this sample and leaves the others; an empty draft is removed.

    No audit entry: a draft changes no data set.
    """
    given = {name: value for name, value in (("text", text), ("note", note), ("comment", comment)) if value is not None}
    for name, value in given.items():
        if len(value) > MAX_TEXT:
            raise Invalid(f"`{name}` has more than {MAX_TEXT:,} characters.", errors=[FieldError(name, "is too long")])
    if not Sample.objects.of(access.project).filter(pk=sample_id).exists():
        raise NotFound(f"There is no sample {sample_id} in {access.project.slug}.")
    draft, _ = Draft.objects.update_or_create(sample_id=sample_id, reviewer=access.user, defaults=given)
    if not (draft.text or draft.note or draft.comment):
        draft.delete()
        return Saved(None)
    return Saved(draft.updated_at)


def draft_of(*, access: Access, sample_id: int) -> Draft | None:
    return Draft.objects.filter(sample_id=sample_id, reviewer=access.user).first()
