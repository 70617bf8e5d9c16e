"""A person's new text for an answer. The revisions of an answer form a chain and never change."""

from dataclasses import dataclass

from django.db import transaction

from curation.duels.models import Duel, PromptText
from curation.projects import audit
from curation.projects.access import Access
from curation.review.decisions.drafts import MAX_TEXT
from curation.review.decisions.outcome import kept_side, latest_revision
from curation.review.decisions.state import change, refuse_errors, refuse_stale_version
from curation.review.models import Draft, Pick, Revision
from curation.review.queue.lease import held_by_other, holder_of, lock_sample, own_lease
from curation.review.queue.seats import pick_of, seats_meant
from curation.samples.models import Kind, Sample
from curation.web.problems import FieldError, Invalid
from curation.web.text.storable import text_errors
from judging.messages import content_of


@dataclass(frozen=True, slots=True)
class Revised:
    """The new revision, and the sample with its new version."""

    revision: Revision
    sample: Sample


def revise(
    *, access: Access, sample_id: int, text: str, note: str = "", of: str = Pick.CHALLENGER, version: int | None = None
) -> Revised:
    """Add a revision after the latest one of this side's answer and raise the sample's version.

    Refused: `Stale` for another version, `Conflict` where another reviewer has the sample, `Invalid` for an empty or
    unchanged text.
    """
    if of not in (Pick.CHALLENGER, Pick.KING):
        raise Invalid("`of` is king or challenger.", errors=[FieldError("of", "is king or challenger")])
    if not text.strip():
        raise Invalid("The revised answer is empty.", errors=[FieldError("text", "is empty")])
    refuse_errors(text_errors("text", text, at_most=MAX_TEXT) + text_errors("note", note, at_most=MAX_TEXT))
    with transaction.atomic():
        sample = lock_sample(access.project, sample_id)
        refuse_stale_version(sample, version)
        holder = holder_of(sample.pk, other_than=access.user)
        if holder is not None:
            raise held_by_other(sample.pk, holder)
        parent = latest_revision(sample, of)
        if text == (parent.text if parent else original_text(sample, of)):
            raise Invalid(
                "The text is the same as before.", code="unchanged", errors=[FieldError("text", "is unchanged")]
            )
        last = Revision.objects.filter(sample=sample).order_by("-number").values_list("number", flat=True).first()
        revision = Revision.objects.create(
            sample=sample,
            parent=parent,
            author=access.user,
            number=(last or 0) + 1,
            of=of,
            text=text,
            note=note,
        )
        change(sample)
        Draft.objects.filter(sample=sample, reviewer=access.user).update(text="", note="")
        audit.record(
            actor=access.user,
            action="sample.revise",
            subject=str(sample.pk),
            project=access.project,
            data={"revision": revision.pk, "number": revision.number, "of": of},
        )
    return Revised(revision, sample)


def side_to_revise(access: Access, sample: Sample, *, preference: str, page_lease: str) -> Pick:
    """The side whose answer a page's preference opens for editing, the challenger's where it names none."""
    seats = seats_meant(preference, access, sample, own_lease(sample, access), page_lease=page_lease)
    return kept_side(pick_of(preference, seats))


def original_text(sample: Sample, of: str) -> str:
    """The model's own answer on this side of the sample's duel."""
    duel = Duel.objects.filter(sample=sample).select_related("challenger__text", "king__text").first()
    if duel is None and sample.kind == Kind.TRAJECTORY:
        raise Invalid("A trajectory is not edited. Roll its scenario out again to refine it.")
    if duel is None:
        raise Invalid(f"Sample {sample.pk} has no answer to revise.")
    if of == Pick.CHALLENGER:
        return duel.challenger.text.text
    return duel.king.text.text if duel.king else reference_text(duel.prompt_id)


def reference_text(prompt_id: int) -> str:
    """The source's own turn, read without the prompt's long history."""
    reference = PromptText.objects.filter(prompt_id=prompt_id).values_list("reference", flat=True).first()
    return content_of(reference) if reference is not None else ""
