import pytest

from curation.projects.access import Access
from curation.projects.models import AuditEntry
from curation.review.decisions.decide import decide
from curation.review.decisions.revise import revise
from curation.review.decisions.undo import undo
from curation.review.models import Decision
from curation.review.queue.take import take_next
from curation.samples.models import Flag, Sample
from curation.web.problems import Conflict
from tests.review.rows import judged, project_with_reviewer, reviewer_of, taken_by

pytestmark = pytest.mark.django_db


def samples_of(access: Access, count: int) -> list[Sample]:
    return [judged(access.project, priority=float(n)) for n in range(count)]


def states(samples: list[Sample]) -> list[str]:
    for sample in samples:
        sample.refresh_from_db()
    return [sample.status for sample in samples]


def test_undo_goes_back_over_several_steps_and_samples() -> None:
    access = project_with_reviewer()
    samples = samples_of(access, 3)
    for sample, action in zip(samples, ("approve", "reject", "refine"), strict=True):
        decide(access=access, sample_id=sample.pk, action=action)

    assert undo(access=access).sample == samples[2]
    assert states(samples) == ["approved", "rejected", "pending"]
    undo(access=access)
    assert states(samples) == ["approved", "pending", "pending"]
    undo(access=access)
    assert states(samples) == ["pending"] * 3
    with pytest.raises(Conflict, match="no decision"):
        undo(access=access)
    assert Decision.objects.count() == 6, "the log only grows"
    assert Decision.objects.filter(undone_by=None).exclude(action="undo").count() == 0
    assert AuditEntry.objects.filter(action="sample.undo").count() == 3


def test_undo_puts_back_who_decided_when_and_the_cleared_leak() -> None:
    access = project_with_reviewer()
    other = reviewer_of(access.project)
    sample = judged(access.project, flags=int(Flag.LEAK))
    decide(access=other, sample_id=sample.pk, action="approve")
    sample.refresh_from_db()
    at = sample.decided_at
    decide(access=access, sample_id=sample.pk, action="reject", version=2)

    undo(access=access)

    sample.refresh_from_db()
    assert (sample.status, sample.decided_by, sample.decided_at) == ("approved", other.user, at)
    assert sample.leak_cleared and sample.version == 4


def test_an_undone_skip_no_longer_goes_behind() -> None:
    access = project_with_reviewer()
    first, _ = samples_of(access, 2)
    decide(access=access, sample_id=first.pk, action="skip")
    undo(access=access)
    assert taken_by(access).sample == first
    assert first.version == 1


def test_only_own_decisions_are_undone() -> None:
    access = project_with_reviewer()
    other = reviewer_of(access.project)
    (sample,) = samples_of(access, 1)
    decide(access=other, sample_id=sample.pk, action="approve")
    with pytest.raises(Conflict, match="no decision on sample"):
        undo(access=access, sample_id=sample.pk)
    assert states([sample]) == ["approved"]


def test_undo_is_refused_in_words_when_someone_else_has_decided_since() -> None:
    access = project_with_reviewer()
    other = reviewer_of(access.project)
    (sample,) = samples_of(access, 1)
    decide(access=access, sample_id=sample.pk, action="approve")
    decide(access=other, sample_id=sample.pk, action="reject", version=2)
    with pytest.raises(Conflict, match=f"{other.user.username} has since decided 'Reject'"):
        undo(access=access)
    assert states([sample]) == ["rejected"]
    undo(access=other)
    undo(access=access)
    assert states([sample]) == ["pending"]


def test_undo_is_refused_when_someone_else_has_revised_since_or_holds_it() -> None:
    access = project_with_reviewer()
    other = reviewer_of(access.project)
    revised, held = samples_of(access, 2)
    decide(access=access, sample_id=revised.pk, action="refine")
    revise(access=other, sample_id=revised.pk, text="better")
    with pytest.raises(Conflict, match="saved revision 1"):
        undo(access=access)

    decide(access=access, sample_id=held.pk, action="skip")
    take_next(access=other)
    with pytest.raises(Conflict, match=f"in review by {other.user.username}"):
        undo(access=access)


def test_own_work_since_does_not_stand_in_the_way() -> None:
    access = project_with_reviewer()
    (sample,) = samples_of(access, 1)
    decide(access=access, sample_id=sample.pk, action="refine")
    revise(access=access, sample_id=sample.pk, text="better")
    undo(access=access)
    assert states([sample]) == ["pending"]
