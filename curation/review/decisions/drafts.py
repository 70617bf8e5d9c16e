"""Drafts of reviewers, kept on the server: a closed browser or a restarted server loses nothing."""

from datetime import datetime

from curation.projects.access import Access
from curation.review.decisions.state import refuse_errors
from curation.review.models import Draft, Pick
from curation.samples.models import Sample
from curation.web.problems import NotFound
from curation.web.text.storable import text_errors

MAX_TEXT = 1_000_000


def save_draft(
    *,
    access: Access,
    sample_id: int,
    of: str = Pick.CHALLENGER,
    text: str | None = None,
    note: str | None = None,
    comment: str | None = None,
    pick: str | None = None,
) -> datetime | None:
    """Keep the given parts of the caller's draft and leave the others; `of` is the side that `text` and `note` revise.
    Return when it was written, None where it is now empty and removed.

    No audit entry: a draft changes no data set.
    """
    prefix = "king_" if of == Pick.KING else ""
    parts = {f"{prefix}text": text, f"{prefix}note": note, "comment": comment, "pick": pick}
    given = {name: value for name, value in parts.items() if value is not None}
    refuse_errors([error for name, value in given.items() for error in text_errors(name, value, at_most=MAX_TEXT)])
    if not Sample.objects.of(access.project).filter(pk=sample_id).exists():
        raise NotFound(f"There is no sample {sample_id} in {access.project.slug}.")
    draft, _ = Draft.objects.update_or_create(sample_id=sample_id, reviewer=access.user, defaults=given)
    return None if _removed_if_empty(draft) else draft.updated_at


def clear_draft(*, access: Access, sample_id: int, of: str = "") -> None:
    """Clear the stored draft: the comment and the pick, or the text and note of one side's answer."""
    prefix = "king_" if of == Pick.KING else ""
    names = (f"{prefix}text", f"{prefix}note") if of else ("comment", "pick")
    own = Draft.objects.filter(sample=sample_id, reviewer=access.user)
    if own.update(**dict.fromkeys(names, "")):
        _removed_if_empty(own.get())


def _removed_if_empty(draft: Draft) -> bool:
    """A pick alone is no draft."""
    empty = not (draft.text or draft.note or draft.king_text or draft.king_note or draft.comment)
    if empty:
        draft.delete()
    return empty


def draft_of(*, access: Access, sample_id: int) -> Draft | None:
    return Draft.objects.filter(sample_id=sample_id, reviewer=access.user).first()
