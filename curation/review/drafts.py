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


def save_draft(*, access: Access, sample_id: int, text: str, note: str, comment: str) -> Saved:
    """Keeps the caller's draft of this sample; an empty one is removed. No audit entry: a draft changes no data set."""
    for name, value in (("text", text), ("note", note), ("comment", comment)):
        if len(value) > MAX_TEXT:
            raise Invalid(f"`{name}` has more than {MAX_TEXT:,} characters.", errors=[FieldError(name, "is too long")])
    if not Sample.objects.of(access.project).filter(pk=sample_id).exists():
        raise NotFound(f"There is no sample {sample_id} in {access.project.slug}.")
    if not (text or note or comment):
        Draft.objects.filter(sample_id=sample_id, reviewer=access.user).delete()
        return Saved(None)
    draft, _ = Draft.objects.update_or_create(
        sample_id=sample_id, reviewer=access.user, defaults={"text": text, "note": note, "comment": comment}
    )
    return Saved(draft.updated_at)


def draft_of(*, access: Access, sample_id: int) -> Draft | None:
    return Draft.objects.filter(sample_id=sample_id, reviewer=access.user).first()
