"""What a reviewer is typing, kept on the server, so that a closed browser or a restarted server loses nothing."""

from dataclasses import dataclass
from datetime import datetime

from curation.projects.access import Access
from curation.review.decisions.words import wrong_text
from curation.review.models import Draft
from curation.samples.models import Sample
from curation.web.problems import Invalid, NotFound

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
    wrong = [error for name, value in given.items() for error in wrong_text(name, value, most=MAX_TEXT)]
    if wrong:
        raise Invalid("; ".join(f"`{error.path}` {error.message}" for error in wrong) + ".", errors=wrong)
    if not Sample.objects.of(access.project).filter(pk=sample_id).exists():
        raise NotFound(f"There is no sample {sample_id} in {access.project.slug}.")
    draft, _ = Draft.objects.update_or_create(sample_id=sample_id, reviewer=access.user, defaults=given)
    if not (draft.text or draft.note or draft.comment):
        draft.delete()
        return Saved(None)
    return Saved(draft.updated_at)


def draft_of(*, access: Access, sample_id: int) -> Draft | None:
    return Draft.objects.filter(sample_id=sample_id, reviewer=access.user).first()
