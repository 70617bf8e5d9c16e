from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from curation.projects.models import AuditEntry
from curation.review.decisions.decide import decide
from curation.review.decisions.revise import revise
from curation.review.models import Decision, Lease, Pick
from curation.review.queue.next import lease_next
from curation.samples.models import Flag
from curation.web.problems import Conflict, Invalid, Stale
from tests.factories import make_sample
from tests.review.rows import judged, project_with_reviewer, reviewer_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("action", "status"), [("approve", "approved"), ("reject", "rejected"), ("refine", "needs_refine")]
)
def test_a_decision_settles_the_sample_and_is_logged(action: str, status: str) -> None:
    access = project_with_reviewer()
    sample = judged(access.project)
    lease_next(access=access)

    done = decide(
        access=access, sample_id=sample.pk, action=action, version=1, reason="wrong", comment="c", seconds=2.5
    )

    sample.refresh_from_db()
    assert (sample.status, sample.version, sample.decided_by) == (status, 2, access.user)
    assert sample.decided_at is not None and not sample.leak_cleared
    line = Decision.objects.get()
    assert line == done
    assert (line.action, line.version, line.reason, line.comment, line.seconds) == (action, 1, "wrong", "c", 2.5)
    assert line.before == {"status": "pending", "decided_by": None, "decided_at": None, "leak_cleared": False}
    assert not Lease.objects.exists()
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.subject, entry.actor) == (f"sample.{action}", str(sample.pk), access.user)
    assert entry.data == {"decision": line.pk, "version": 1}


@pytest.mark.parametrize(("action", "version"), [("skip", 1), ("flag", 2)])
def test_skip_and_flag_give_the_sample_back_undecided_and_a_flag_is_a_new_version(action: str, version: int) -> None:
    access = project_with_reviewer()
    sample = judged(access.project)
    lease_next(access=access)
    line = decide(access=access, sample_id=sample.pk, action=action, reason="asks for a secret", seconds=0.0)
    assert line.seconds == 0.0
    sample.refresh_from_db()
    assert (sample.status, sample.version, sample.decided_by) == ("pending", version, None)
    assert Decision.objects.get().reason == "asks for a secret" and not Lease.objects.exists()


@pytest.mark.parametrize(
    ("preference", "swapped", "pick"),
    [
        ("left", False, Pick.KING),
        ("left", True, Pick.CHALLENGER),
        ("right", False, Pick.CHALLENGER),
        ("right", True, Pick.KING),
        ("draw", True, Pick.DRAW),
        ("king", True, Pick.KING),
        ("challenger", False, Pick.CHALLENGER),
        ("", True, Pick.CHALLENGER),
    ],
)
def test_a_preference_is_kept_as_said_and_resolved_by_the_seats_of_the_lease(
    preference: str, swapped: bool, pick: str
) -> None:
    access = project_with_reviewer()
    sample = judged(access.project)
    lease_next(access=access)
    Lease.objects.update(swapped=swapped)
    line = decide(access=access, sample_id=sample.pk, action="approve", preference=preference)
    assert (line.preference, line.pick) == (preference, pick)
    assert line.seat == ("challenger_left" if swapped else "king_left")


def test_left_and_right_mean_nothing_without_a_lease() -> None:
    access = project_with_reviewer()
    sample = judged(access.project)
    with pytest.raises(Invalid, match="say king or challenger"):
        decide(access=access, sample_id=sample.pk, action="approve", preference="left")
    assert not Decision.objects.exists()


def test_a_stale_version_is_refused_with_what_changed() -> None:
    access = project_with_reviewer()
    other = reviewer_of(access.project)
    sample = judged(access.project)
    decide(access=other, sample_id=sample.pk, action="approve", version=1)
    with pytest.raises(Stale) as refusal:
        decide(access=access, sample_id=sample.pk, action="reject", version=1)
    assert refusal.value.current["version"] == 2
    assert refusal.value.current["status"] == "approved"
    assert refusal.value.current["decided_by"] == other.user.username
    assert refusal.value.current["decided_at"]
    sample.refresh_from_db()
    assert sample.status == "approved" and Decision.objects.count() == 1


def test_a_sample_in_review_by_another_is_refused_by_name_until_the_lease_lapses() -> None:
    access = project_with_reviewer()
    other = reviewer_of(access.project)
    sample = judged(access.project)
    lease_next(access=other)
    with pytest.raises(Conflict, match=other.user.username):
        decide(access=access, sample_id=sample.pk, action="approve")
    Lease.objects.update(until=timezone.now() - timedelta(seconds=1))
    decide(access=access, sample_id=sample.pk, action="approve")
    assert not Lease.objects.exists()


def test_what_another_has_settled_is_decided_again_only_by_naming_its_version() -> None:
    access = project_with_reviewer()
    other = reviewer_of(access.project)
    sample = judged(access.project)
    decide(access=other, sample_id=sample.pk, action="approve")
    with pytest.raises(Conflict, match="send its version, 2"):
        decide(access=access, sample_id=sample.pk, action="reject")
    decide(access=access, sample_id=sample.pk, action="reject", version=2)
    sample.refresh_from_db()
    assert (sample.status, sample.decided_by) == ("rejected", access.user)


def test_approving_a_flagged_leak_clears_it_and_rejecting_does_not() -> None:
    access = project_with_reviewer()
    leak = judged(access.project, flags=int(Flag.LEAK))
    decide(access=access, sample_id=leak.pk, action="approve")
    leak.refresh_from_db()
    assert leak.leak_cleared
    decide(access=access, sample_id=leak.pk, action="reject")
    leak.refresh_from_db()
    assert not leak.leak_cleared


def test_approve_names_the_revision_that_it_keeps() -> None:
    access = project_with_reviewer()
    sample = judged(access.project)
    revision = revise(access=access, sample_id=sample.pk, text="better")
    assert decide(access=access, sample_id=sample.pk, action="approve").revision == revision
    assert decide(access=access, sample_id=sample.pk, action="approve", preference="king").revision is None


@pytest.mark.parametrize(
    "given",
    [
        {"action": "bless"},
        {"action": "undo"},
        {"action": "approve", "preference": "both"},
        {"action": "approve", "seconds": -1.0},
        {"action": "approve", "seconds": float("nan")},
        {"action": "reject", "reason": "x" * 201},
        {"action": "reject", "comment": "x" * 20_001},
        {"action": "reject", "comment": "a\0b"},
    ],
)
def test_nonsense_is_refused_and_nothing_is_written(given: dict[str, Any]) -> None:
    access = project_with_reviewer()
    sample = judged(access.project)
    with pytest.raises(Invalid):
        decide(access=access, sample_id=sample.pk, **given)
    sample.refresh_from_db()
    assert sample.version == 1 and not Decision.objects.exists() and not AuditEntry.objects.exists()


def test_a_trajectory_has_no_sides_and_no_pick_and_is_cut_off_by_an_approval_only() -> None:
    access = project_with_reviewer()
    sample = make_sample(access.project, kind="trajectory")
    with pytest.raises(Invalid) as refused:
        decide(access=access, sample_id=sample.pk, action="reject", trim=1)
    assert [error.path for error in refused.value.errors] == ["trim"]
    with pytest.raises(Invalid, match="no sides"):
        decide(access=access, sample_id=sample.pk, action="approve", preference="king")
    assert decide(access=access, sample_id=sample.pk, action="approve").pick == ""
