"""A person's new text for an answer. Revisions form a chain per answer; none is ever altered."""

from dataclasses import dataclass

from django.db import transaction

from curation.duels.models import Duel
from curation.projects import audit
from curation.projects.access import Access
from curation.review.decisions.drafts import MAX_TEXT
from curation.review.decisions.outcome import reference_texts
from curation.review.decisions.state import change, lock_sample, refuse_stale_version
from curation.review.decisions.words import wrong_text
from curation.review.models import Draft, Pick, Revision
from curation.review.queue.lease import held_by_other, holder_of
from curation.samples.models import Kind, Sample
from curation.web.problems import FieldError, Invalid


@dataclass(frozen=True, slots=True)
class Revised:
    """The new revision, and the sample with its new version."""

    revision: Revision
    sample: Sample


def revise(
    *, access: Access, sample_id: int, text: str, note: str = "", of: str = Pick.CANDIDATE, version: int | None = None
) -> Revised:
    """Adds a revision on top of the latest one of this answer (`of`: candidate or opponent) and raises the version.

    Refused: `Stale` for another version, `Conflict` where another reviewer holds the sample, `Invalid` for an empty or
    unchanged text.
    """
    if of not in (Pick.CANDIDATE, Pick.OPPONENT):
        raise Invalid("`of` is candidate or opponent.", errors=[FieldError("of", "is candidate or opponent")])
    if not text.strip():
        raise Invalid("The revised answer is empty.", errors=[FieldError("text", "is empty")])
    wrong = wrong_text("text", text, most=MAX_TEXT) + wrong_text("note", note, most=MAX_TEXT)
    if wrong:
        raise Invalid("; ".join(f"`{error.path}` {error.message}" for error in wrong) + ".", errors=wrong)
    with transaction.atomic():
        sample = lock_sample(access.project, sample_id)
        refuse_stale_version(sample, version)
        holder = holder_of(sample.pk, other_than=access.user)
        if holder is not None:
            raise held_by_other(sample.pk, holder)
        parent = Revision.objects.filter(sample=sample, of=of).order_by("-number").first()
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


def original_text(sample: Sample, of: str) -> str:
    """The model's own answer on this side of the sample's duel; the source's turn where that is the opponent."""
    duel = Duel.objects.filter(sample=sample).select_related("challenger__text", "king__text").first()
    if duel is None and sample.kind == Kind.TRAJECTORY:
        raise Invalid("A trajectory is not edited: it is refined by rolling its scenario out again.")
    if duel is None:
        raise Invalid(f"Sample {sample.pk} has no answer that could be revised.")
    if of == Pick.CANDIDATE:
        return duel.challenger.text.text
    return duel.king.text.text if duel.king else reference_texts([duel.prompt_id])[duel.prompt_id]
